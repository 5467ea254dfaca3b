#!/usr/bin/python3
"""Orders over HTTP, each written by the holder of its lock: server.py, with DATABASE_URL and PORT in the environment.

    POST /orders/ID/fence             raises the mark: 204
    PUT  /orders/ID  {"state":"..."}  writes the order: 200

Both need a Fencing-Token.
"""

import os
import re

import psycopg
import uvicorn
from fastapi import Body, Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse

app = FastAPI()

FIELD = re.compile(r'"([1-9][0-9]{0,18})"; *grant="([A-Za-z0-9._:-]{1,64})"', re.ASCII)  # the fence

# How PostgreSQL's refusals are answered: each status tells the client something else to do.
STATUS = {"ZF001": 412, "ZF002": 428, "ZF003": 400, "ZF004": 412, "ZF005": 409, "22003": 400, "55P03": 503, "40001": 503}  # the fence


def claim(order: int, request: Request):
    """What the request claims: one field, whole, or none of it."""
    fields = request.headers.getlist("Fencing-Token")  # the fence
    if not fields:  # the fence
        raise HTTPException(428, "send the token of your grant as Fencing-Token")  # the fence
    found = FIELD.fullmatch(fields[0])  # the fence
    if len(fields) > 1 or found is None:  # the fence
        raise HTTPException(400, 'Fencing-Token is once "281474976710679";grant="b2f1"')  # the fence
    return str(order), found[1], found[2]


# Handlers that are no coroutines run in threads, so that one that waits for its turn holds up nobody.
@app.post("/orders/{order}/fence", status_code=204)
def fence(claim=Depends(claim)):
    with psycopg.connect(DATABASE_URL) as db:
        db.execute("SELECT fence.raise_mark('shop.order', %s, %s, %s)", claim)  # the fence
    return Response(status_code=204)


@app.put("/orders/{order}")
def write(order: int, claim=Depends(claim), state: str = Body(embed=True)):
    # One transaction: committed at the end of the block, rolled back by whatever is raised in it.
    with psycopg.connect(DATABASE_URL) as db:
        db.execute("SELECT fence.admit('shop.order', %s, %s, %s)", claim)  # the fence
        written = db.execute("UPDATE orders SET state = %s WHERE id = %s", (state, order)).rowcount
    if not written:
        raise HTTPException(404, "no such order")
    return {"written": written}


@app.exception_handler(psycopg.Error)
def refused(request: Request, error: psycopg.Error):
    status = STATUS.get(error.sqlstate, 500)  # the fence
    headers = {"Retry-After": "1"} if status == 503 else None
    return JSONResponse({"error": str(error).splitlines()[0]}, status, headers)


DATABASE_URL = os.environ["DATABASE_URL"]
uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
