"""The same for servers: `wsgi` for gunicorn, `asgi` for uvicorn."""
import hashlib
import os

WORK = int(os.environ.get("WORK", "1"))


def digest():
    text = "order"
    for _ in range(WORK):
        text = hashlib.sha256(text.encode()).hexdigest()
    return text.encode()


def wsgi(_, start_response):
    body = digest()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, _, send):
    if scope["type"] == "http":
        body = digest()
        head = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})
