"""An application for uvicorn, which waits MS milliseconds in the way that WAIT names."""

import asyncio
import os
import time

MS = float(os.environ.get("MS", "0"))
BODY = b"hello"
HEADERS = [(b"content-type", b"text/plain"), (b"content-length", b"5")]


async def app(scope, receive, send) -> None:
    if MS and os.environ["WAIT"] == "async":
        await asyncio.sleep(MS / 1000)
    elif MS:
        time.sleep(MS / 1000)
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})
