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
from fastapi import Body, Depends, FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

app = FastAPI()
FIELD = re.compile(r'"([1-9][0-9]{0,18})"; *grant="([A-Za-z0-9._:-]{1,64})"', re.ASCII)  # the fence

# How PostgreSQL's refusals are answered: each status tells the client something else to do.
PROBLEMS = {
    "ZF001": (412, "stale"), "ZF002": (428, "missing-token"), "ZF003": (400, "malformed"), "ZF004": (412, "collision"),  # the fence
    "ZF005": (409, "unknown-epoch"), "ZF008": (503, "unavailable"), "22003": (400, "malformed"), "55P03": (503, "blocked"),  # the fence
    "40001": (503, "retryable"), "25P03": (503, "retryable"),
}


def claim(request: Request, order: int = Path(gt=0, lt=2**63)):  # what the request claims: one field, whole, or none of it
    fields = request.headers.getlist("Fencing-Token")  # the fence
    if len(fields) != 1:  # the fence
        status, kind = (400, "more-than-one") if fields else (428, "missing-token")  # the fence
        raise HTTPException(status, (kind, "send the token of your grant as Fencing-Token, once"))  # the fence
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
    with connect() as db:  # one transaction: committed at its end, rolled back by whatever is raised in it
        db.execute("SELECT fence.admit('shop.order', %s, %s, %s)", claim)  # the fence
        written = db.execute("UPDATE orders SET state = %s WHERE id = %s", (state, order)).rowcount
    if not written:
        raise HTTPException(404, (None, "no such order"))
    return {"written": written}


def refused(request: Request, error: HTTPException | RequestValidationError | psycopg.Error):
    if isinstance(error, RequestValidationError):
        status, kind, told = 422, None, error.errors()[0]["msg"]
    elif isinstance(error, HTTPException):
        status, (kind, told) = error.status_code, error.detail if isinstance(error.detail, tuple) else (None, error.detail)
    else:
        logging.error("%s", error)  # Its first line is told at most: DETAIL holds the mark, and the rest is not for strangers.
        status, kind = PROBLEMS.get(error.sqlstate, (500, "unknown-outcome"))
        told = str(error).splitlines()[0] if (error.sqlstate or "")[:2] in ("ZF", "55") else "the log of this service says more"
    problem = {"type": f"urn:fence:problem:{kind}" if kind else "about:blank", "status": status, "detail": told}  # the fence
    return JSONResponse(problem, status, {"Retry-After": "1"} if status == 503 else None, "application/problem+json")


for kind in (HTTPException, RequestValidationError, psycopg.Error):
    app.add_exception_handler(kind, refused)
uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
