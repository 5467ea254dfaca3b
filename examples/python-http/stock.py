#!/usr/bin/python3
"""Reservations of stock over HTTP, kept in PostgreSQL.

    POST /items/ITEM/fence          raises the item's mark: 204
    GET  /items/ITEM/reservations   what is reserved: 200
    POST /items/ITEM/reservations   {"order": "order-7", "quantity": 3}, with an Idempotency-Key of its own: 201

Both POSTs need a Fencing-Token. usage: stock.py DATABASE_URL PORT
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg

TOKEN = re.compile(r'"([1-9][0-9]{0,18})"; ?grant="([A-Za-z0-9._:-]{1,64})"')
ROUTE = re.compile(r"/items/([a-z0-9-]+)/(fence|reservations)")

# How PostgreSQL's refusals are answered: each status tells the holder something else to do.
STATUS = {"ZF001": 412, "ZF002": 428, "ZF003": 400, "ZF004": 412, "ZF005": 409, "55P03": 503, "40001": 503, "23505": 409}


class Refused(Exception):
    """An answer other than success."""


class Stock(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(self.reservations)

    def do_POST(self):
        self.answer(self.write)

    def reservations(self, db, item, what, body):
        rows = db.execute("SELECT id, order_name, quantity FROM reservation WHERE item = %s", (item,))
        return 200, [{"id": row[0], "order": row[1], "quantity": row[2]} for row in rows]

    def write(self, db, item, what, body):
        token, grant = self.claim()
        if what == "fence":
            db.execute("SELECT fence.raise_mark('stock.item', %s, %s, %s)", (item, token, grant))
            return 204, None
        order = json.loads(body)
        db.execute("SELECT fence.admit('stock.item', %s, %s, %s)", (item, token, grant))  # the fence
        db.execute(
            "INSERT INTO reservation (id, item, order_name, quantity) VALUES (%s, %s, %s, %s)",
            (self.headers["Idempotency-Key"], item, order["order"], order["quantity"]),
        )
        return 201, {"reserved": order["quantity"]}

    def claim(self):
        """The token and the grant's id: one field, whole, or none of it."""
        fields = self.headers.get_all("Fencing-Token", [])
        if not fields:
            raise Refused(428, "send the token of your grant as Fencing-Token")
        claim = TOKEN.fullmatch(fields[0])
        if len(fields) > 1 or claim is None:
            raise Refused(400, 'Fencing-Token is once "281474976710679";grant="b2f1"')
        return int(claim[1]), claim[2]

    def answer(self, handle):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        route = ROUTE.fullmatch(self.path)
        try:
            if route is None:
                raise Refused(404, "there are /items/ITEM/fence and /items/ITEM/reservations")
            # One transaction a request: committed at the end of the block, rolled back by whatever is raised in it.
            with psycopg.connect(DATABASE_URL) as db:
                status, answer = handle(db, *route.groups(), body)
        except Refused as refused:
            status, answer = refused.args[0], {"error": refused.args[1]}
        except psycopg.Error as error:
            status, answer = STATUS.get(error.sqlstate, 500), {"error": str(error).splitlines()[0]}
        text = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


DATABASE_URL = sys.argv[1]
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Stock).serve_forever()
