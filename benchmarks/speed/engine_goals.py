"""What heedful's engine is to reach beside others."""

from __future__ import annotations

from benchmarks.speed.comparisons import Goal

# The speed of many sentences, by precision and width.
THROUGHPUT = {
    ("int8", 256): Goal(">= 1.3", ">= 1.5"),
    ("int8", 512): Goal(">= 1.15", ">= 1.4"),
    ("fp32", 256): Goal(">= 1.0", ">= 1.2"),
    ("fp32", 512): Goal(">= 1.0", ">= 1.2"),
}
LATENCY = Goal(">= 1.7", ">= 2.5")
FILE = Goal(">= 1.2", ">= 1.5")
START = Goal(">= 1.0", ">= 1.3")
MEMORY = Goal("<= 1.1", "<= 0.8")
GPT_CTRANSLATE2 = Goal(">= 1.2", ">= 1.5")
GPT_HUGGING_FACE = Goal(">= 3", ">= 4")
GPT_BANDWIDTH = Goal(">= 50")
