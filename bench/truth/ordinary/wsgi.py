"""Applications for gunicorn; MODE names one."""

import json
import os
import sqlite3
import threading
import time

ITEMS = [{"id": number, "name": f"item {number}", "price": number * 1.5} for number in range(100)]
local = threading.local()


def hello() -> str:
    return "hello"


def waits() -> str:
    time.sleep(float(os.environ["MS"]) / 1000)
    return "hello"


def spins() -> str:
    return str(sum(number * number for number in range(5000)))


def dumped() -> str:
    return json.dumps(ITEMS)


def joined() -> str:
    return "[" + ", ".join(f'{{"id": {one["id"]}, "name": "{one["name"]}", "price": {one["price"]}}}' for one in ITEMS) + "]"


def database() -> sqlite3.Connection:
    return sqlite3.connect(os.path.join(os.environ["ORDINARY_TMP"], f"wsgi-{os.getpid()}.sqlite"))


def queries() -> str:
    """One connection for each thread, or for each request."""
    if os.environ["CONNECT"] == "each":
        connection = database()
        try:
            return one_row(connection)
        finally:
            connection.close()
    if not hasattr(local, "connection"):
        local.connection = database()
    return one_row(local.connection)


def one_row(connection: sqlite3.Connection) -> str:
    return str(connection.execute("select value from items where id = ?", (1,)).fetchone())


MODES = {mode.__name__: mode for mode in (hello, waits, spins, dumped, joined, queries)}
mode = MODES[os.environ["MODE"]]
if mode is queries:
    database().execute("create table items as select 1 as id, 'value' as value")


def app(environ: dict, start_response) -> list:
    body = mode().encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
