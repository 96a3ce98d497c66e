"""The C++ engine, which runs models without torch."""
