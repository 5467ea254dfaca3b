#!/usr/bin/python3
"""Orders over HTTP, each written by the holder of its lock, who presents its Fencing-Token; DATABASE_URL and PORT are set:

    POST /orders/ID/fence             raises the mark: 204
    PUT  /orders/ID  {"state":"..."}  writes the order: 200
"""

import logging
import os
import re

import psycopg
import uvicorn
from fastapi import Body, Depends, FastAPI, HTTPException, Path, Request, Response
from fastapi.responses import JSONResponse

app = FastAPI()
FIELD = re.compile(r'"([1-9][0-9]{0,18})"; *grant="([A-Za-z0-9._:-]{1,64})"', re.ASCII)  # the fence

# How PostgreSQL's refusals are answered: each status tells the client something else to do.
PROBLEMS = {
    "ZF001": (412, "stale"), "ZF002": (428, "missing-token"), "ZF003": (400, "malformed"), "ZF004": (412, "collision"),  # the fence
    "ZF005": (409, "unknown-epoch"), "ZF008": (503, "unavailable"), "22003": (400, "malformed"), "55P03": (503, "blocked"),  # the fence
    "40001": (503, "retryable"), "25P03": (503, "retryable"),
}


def claim(request: Request, order: int = Path(gt=0, lt=2**63)):
    """What the request claims: one field, whole, or none of it."""
    fields = request.headers.getlist("Fencing-Token")  # the fence
    if not fields:  # the fence
        raise HTTPException(428, ("missing-token", "send the token of your grant as Fencing-Token"))  # the fence
    if len(fields) > 1:  # the fence
        raise HTTPException(400, ("more-than-one", "send one Fencing-Token"))  # the fence
    if (found := FIELD.fullmatch(fields[0])) is None:  # the fence
        raise HTTPException(400, ("malformed", 'Fencing-Token is "TOKEN";grant="GRANT-ID"'))  # the fence
    return str(order), found[1], found[2]


def connect():
    try:
        return psycopg.connect(os.environ["DATABASE_URL"], connect_timeout=5)
    except psycopg.OperationalError as error:
        raise HTTPException(503, ("unavailable", "no connection to the database; nothing was written")) from error


# Handlers that are no coroutines run in threads, so that one that waits for its turn holds up nobody.
@app.post("/orders/{order}/fence", status_code=204, response_class=Response)
def fence(claim=Depends(claim)):
    with connect() as db:
        db.execute("SELECT fence.raise_mark('shop.order', %s, %s, %s)", claim)  # the fence


@app.put("/orders/{order}")
def write(order: int, claim=Depends(claim), state: str = Body(embed=True)):
    # One transaction: committed at the end of the block, rolled back by whatever is raised in it.
    with connect() as db:
        db.execute("SELECT fence.admit('shop.order', %s, %s, %s)", claim)  # the fence
        written = db.execute("UPDATE orders SET state = %s WHERE id = %s", (state, order)).rowcount
    if not written:
        raise HTTPException(404, (None, "no such order"))
    return {"written": written}


@app.exception_handler(HTTPException)
@app.exception_handler(psycopg.Error)
def refused(request: Request, error: HTTPException | psycopg.Error):
    if isinstance(error, HTTPException):
        status = error.status_code
        kind, told = error.detail if isinstance(error.detail, tuple) else (None, error.detail)
    else:
        logging.error("%s", error)  # Its first line is told at most: DETAIL holds the mark, and the rest is not for strangers.
        status, kind = PROBLEMS.get(error.sqlstate, (500, "unknown-outcome"))
        told = str(error).splitlines()[0] if (error.sqlstate or "")[:2] in ("ZF", "55") else "the log of this service says more"
    problem = {"type": f"urn:fence:problem:{kind}" if kind else "about:blank", "status": status, "detail": told}  # the fence
    return JSONResponse(problem, status, {"Retry-After": "1"} if status == 503 else None, "application/problem+json")


uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
