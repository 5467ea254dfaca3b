#!/usr/bin/python3
"""Sends an order, under the token and the grant id that its lock gave: send.py ORDER TOKEN GRANT"""

import os
import sys

import psycopg


def send(connection, order, token, grant):
    claim = (str(order), token, grant)
    # Committed before the first read: from here on every older holder is refused.
    connection.execute("SELECT fence.raise_mark('shop.order', %s, %s, %s)", claim)  # the fence
    (state,) = connection.execute("SELECT state FROM orders WHERE id = %s", (order,)).fetchone()
    print(f"order {order} is {state}; press Enter to send it", flush=True)
    sys.stdin.readline()  # However long this takes: the write below is refused once a newer holder has been here.
    with connection.transaction():
        connection.execute("SELECT fence.admit('shop.order', %s, %s, %s)", claim)  # the fence
        connection.execute("UPDATE orders SET state = %s WHERE id = %s", (f"sent by {grant}", order))
    print(f"order {order} sent by {grant}")


def main():
    order, token, grant = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    # autocommit: psycopg would else open a transaction at the first statement, and raise_mark would not be committed.
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        try:
            send(connection, order, token, grant)
        except psycopg.Error as error:
            if error.sqlstate != "ZF001":  # the fence
                raise
            # Terminal for this grant: no retry, and no newer token for work that was begun under this one.
            sys.exit(f"refused, {error.sqlstate}: {error.diag.message_detail}")


main()
