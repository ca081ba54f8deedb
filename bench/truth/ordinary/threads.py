"""A server on asyncio whose requests run in a ThreadPoolExecutor of THREADS: MODE waits or spins."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor

RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
pool = ThreadPoolExecutor(int(os.environ["THREADS"]))


def work() -> None:
    if os.environ["MODE"] == "waits":
        time.sleep(0.01)
    else:
        sum(number * number for number in range(5000))


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.get_running_loop().run_in_executor(pool, work)
            writer.write(RESPONSE)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", int(os.environ["PORT"]))
    await server.serve_forever()


asyncio.run(main())
