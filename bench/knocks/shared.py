"""What the knocks use of the other studies here. It must not do anything itself."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# After the script's own folder.
sys.path[1:1] = [str(ROOT / "bench" / "truth"), str(ROOT / "bench" / "engine")]

from rounds import positive, processor, progress  # noqa: E402
from study import duration  # noqa: E402
from toml_writer import toml_text  # noqa: E402

__all__ = ["ROOT", "duration", "positive", "processor", "progress", "toml_text"]
