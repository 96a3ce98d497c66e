"""The engine in C++ that runs models without torch."""
