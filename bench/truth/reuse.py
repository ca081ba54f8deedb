"""What the studies use of bench/engine. It must not do anything itself."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Before the installed packages, one of which may be called `markdown` too; after the script's own folder.
sys.path.insert(1, str(ROOT / "bench" / "engine"))

from markdown import section  # noqa: E402
from processes import CLIENT_CORE, SERVER_CORE, Failed, connect, ended, free_port, started  # noqa: E402
from rounds import positive, processor, progress  # noqa: E402
from tools import BENCH_TOOLS, K6_INSTALL, OHA_INSTALL, Load, Tool, all_tools  # noqa: E402

__all__ = ["BENCH_TOOLS", "CLIENT_CORE", "K6_INSTALL", "OHA_INSTALL", "ROOT", "SERVER_CORE", "Failed", "Load", "Tool", "all_tools", "connect",
           "ended", "free_port", "positive", "processor", "progress", "section", "started"]
