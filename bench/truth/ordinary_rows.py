"""The comparisons of ordinary.py: two commands each, the load, and what is known of the answer by construction.

Commands run in the folder ordinary/. It must not start anything.
"""

from typing import NamedTuple, Optional


class Row(NamedTuple):
    """Baseline and candidate as `proofload compare` takes them."""

    baseline: str
    candidate: str
    path: str = "/"
    headers: tuple = ()
    body: Optional[str] = None
    flags: tuple = ()  # more of `proofload compare`
    beside: str = ""  # starts what both call; its port is in UPSTREAM
    settle_s: float = 0  # processes live this long before wrk measures, both at once, instead of fresh ones for each run
    known: Optional[tuple] = None  # lowest and highest ratio by construction, where wrk cannot measure it
    needs: tuple = ()  # programs that may be missing


def node(mode: str, baseline: str, candidate: str, **more) -> Row:
    return Row(*(f"MODE={mode} {side} node node.cjs" for side in (baseline, candidate)), **more)


def sides(template: str, baseline: str, candidate: str, **more) -> Row:
    """One command with a part that differs."""
    return Row(*(template.replace("*", side) for side in (baseline, candidate)), **more)


def known(low: float, high: float) -> tuple:
    return low, high


GUNICORN = "gunicorn -b 127.0.0.1:{port} wsgi:app"
UVICORN = "uvicorn --loop asyncio --no-access-log --lifespan off --port {port} asgi:app"
GO = ("service-go",)
NGINX = ("nginx",)
POSTGRES = ("postgres",)
GZIP = ("Accept-Encoding: gzip",)
JSON = ("Content-Type: application/json",)
BODY = '{"items": [' + ", ".join(f'{{"id": {number}, "name": "item {number}"}}' for number in range(200)) + '], "length": 200}'
AT_300 = ("--metric", "p99", "--rate", "300")
AT_600 = ("--metric", "p99", "--rate", "600")
UPSTREAM = "MODE=waits MS=5 node node.cjs"

SIMPLE = {
    "worker threads, 1 and 2": sides("POOL=* node pool.cjs", "1", "2"),
    "cluster, 1 and 2 workers": sides("MODE=spins TURNS=200000 WORKERS=* node cluster.cjs", "1", "2"),
    "gunicorn, 1 and 2 workers": sides(f"MODE=spins {GUNICORN} -w *", "1", "2"),
    "gunicorn that waits, 1 and 8 threads": sides(f"MODE=waits MS=10 {GUNICORN} --threads *", "1", "8"),
    "libuv's pool, 1 and 4 threads": node("hashes", "TURNS=3000 UV_THREADPOOL_SIZE=1", "TURNS=3000 UV_THREADPOOL_SIZE=4"),
    "Java that waits, pool of 1 and 16": sides("java -Xmx256m Service * 10 300", "1", "16"),
    "upstream of 5 ms, 1 and 10 connections": node("calls", "POOL=1", "POOL=10", beside=UPSTREAM),
    "cold for 20 s, half the work then": node("cold", "COLD_S=0", "COLD_S=20 WARM=0.5", settle_s=22),
    "leak of 8 kB a request": node("leaks", "", "LEAK=1"),
    "Go, GOGC=50 and off": sides("MODE=list GOGC=* service-go", "50", "off", needs=GO),
    "JSON.stringify and fast-json-stringify": node("json", "FORM=stringify", "FORM=fast"),
    "Java, serial and G1": sides("java -XX:+Use*GC -Xmx256m Service 8 0 300", "Serial", "G1"),
    "rate limit of 1,000/s": node("limits", "", "LIMIT=1000"),
    "bodies of 1 and 100 kB": node("size", "SIZE=1000", "SIZE=100000"),
    "event loop blocked by each tenth, at a rate": node("blocks", "SLOW=timer", "SLOW=loop", flags=AT_300, known=known(1, 2.5)),
    "event loop blocked by one in ten, at a rate": node("blocks", "DRAWN=1 SLOW=timer", "DRAWN=1 SLOW=loop", flags=AT_600, known=known(1.5, 12)),
    "timers of 20 and 10 ms": node("waits", "MS=20", "MS=10"),
    "cache off and on": node("caches", "SIZE=0", "SIZE=1"),
    "index off and on": sides("INDEX=* node sqlite.cjs", "off", "on"),
    "connections closed and kept": node("closes", "KEEP_ALIVE=off", "KEEP_ALIVE=on"),
    "console.log off and on": node("logs", "LOG=none", "LOG=console"),
    "nginx, gzip_static off and on": sides("HTTP='gzip_static *;' ./nginx.sh", "off", "on", path="/list.txt", headers=GZIP, needs=NGINX),
    "Express and Fastify": Row("node express.cjs", "node fastify.cjs"),
    "uvicorn, h11 and httptools": sides(f"{UVICORN} --http *", "h11", "httptools"),
}

FURTHER = {
    "semi-space of 1 and 64 MB": sides("MODE=garbage node --max-semi-space-size=* node.cjs", "1", "64"),
    "pbkdf2, sync and async": node("hashes", "FORM=sync", "FORM=async"),
    "Java, C1 only and both compilers": sides("java -XX:TieredStopAtLevel=* Service 8 0 3000", "1", "4"),
    "Java, heap of 16 and 512 MB": sides("java -Xmx*m Service 8 0 3000", "16", "512"),
    "Java, pool of 2 and 64, no waits": sides("java Service * 0 3000", "2", "64"),
    "Java that waits, 16 threads and as many as needed": sides("java Service * 5 30", "16", "0"),
    "thread pool that waits, 1 and 8": sides("MODE=waits THREADS=* python3 threads.py", "1", "8", known=known(7.6, 8.1)),
    "thread pool that computes, 1 and 8": sides("MODE=spins THREADS=* python3 threads.py", "1", "8"),
    "gunicorn, sync and gthread": sides(f"MODE=hello {GUNICORN} -w 2 *", "-k sync", "-k gthread --threads 4"),
    "gunicorn, json.dumps and joined": sides(f"MODE=* {GUNICORN}", "dumped", "joined"),
    "SQLite in Python, connection each time and kept": sides(f"MODE=queries CONNECT=* {GUNICORN}", "each", "kept"),
    "uvicorn, 1 and 2 workers": sides(f"{UVICORN} --workers *", "1", "2"),
    "uvicorn, blocking and asynchronous sleep": sides(f"MS=5 WAIT=* {UVICORN}", "blocking", "async"),
    "SQLite in Node.js, prepared each time and once": sides("PREPARE=* node sqlite.cjs", "each", "once"),
    "PostgreSQL, pool of 1 and 10": sides("POOL=* QUERY='select value, pg_sleep(0.005) from items where id = $1' node postgres.cjs", "1", "10",
                                        beside="./postgres.sh", needs=POSTGRES),
    "PostgreSQL, index off and on": sides("POOL=4 QUERY='select value from items where * = $1' node postgres.cjs", "key", "id",
                                        beside="./postgres.sh", needs=POSTGRES),
    "cache of 100 and 2,000 of 1,000 keys, which fills": node("caches", "KEYS=1000 SIZE=100", "KEYS=1000 SIZE=2000"),
    "log, writeSync and a stream": node("logs", "LOG=sync", "LOG=stream"),
    "nginx before Node.js, connections closed and kept": sides("* ./nginx.sh", "KEEP=", "KEEP=on", path="/proxied",
                                                              beside="MODE=hello node node.cjs", needs=NGINX),
    "nginx, gzip off and on": sides("HTTP='gzip *;' ./nginx.sh", "off", "on", path="/list.txt", headers=GZIP, needs=NGINX),
    "nginx, access log off and on": sides("HTTP='access_log *;' ./nginx.sh", "off", "/dev/null", path="/hello.txt", needs=NGINX),
    "nginx, 1 and 2 workers": sides("WORKERS=* ./nginx.sh", "1", "2", path="/list.txt", needs=NGINX),
    "JSON.stringify and joined": node("json", "FORM=stringify", "FORM=join"),
    "Express, 1 and 30 middlewares": sides("MIDDLEWARES=* node express.cjs", "1", "30"),
    "Express, body as text and as JSON": sides("PARSER=* node express.cjs", "text", "json", headers=JSON, body=BODY),
    "Express, ETag on and off": sides("ITEMS=500 ETAG=* node express.cjs", "weak", "off"),
    "Express, compression off and on": sides("ITEMS=200 COMPRESSION=* node express.cjs", "", "1", headers=GZIP),
    "template compiled each time and once": node("templates", "TEMPLATE=each", "TEMPLATE=cached"),
    "regular expression made each time and once": node("regex", "REGEX=each", "REGEX=once"),
    "gzip, levels 1 and 9": node("gzip", "LEVEL=1", "LEVEL=9", headers=GZIP),
    "file, read and streamed": node("files", "READ=whole", "READ=stream"),
    "calls of an upstream, connections closed and kept": node("calls", "KEEP_ALIVE=off", "KEEP_ALIVE=on", beside="MODE=hello node node.cjs"),
    "Go, GOMAXPROCS 1 and 2": sides("MODE=list GOMAXPROCS=* service-go", "1", "2", needs=GO),
    "Go, gzip writer new and pooled": sides("MODE=zipped WRITER=* service-go", "new", "pooled", headers=GZIP, needs=GO),
    "cluster that waits, 1 and 2 workers": sides("MODE=waits MS=10 WORKERS=* node cluster.cjs", "1", "2"),
    "10 headers more": node("headers", "HEADERS=0", "HEADERS=10"),
}

ROWS = {**SIMPLE, **FURTHER}
