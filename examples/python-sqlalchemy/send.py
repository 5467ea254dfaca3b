#!/usr/bin/python3
"""Sends an order, under the token and the grant id that its lock gave: send.py ORDER TOKEN GRANT"""

import os
import sys

from sqlalchemy import BigInteger, Column, Text, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, declarative_base

Base = declarative_base()


class Order(Base):
    __tablename__ = "orders"
    id = Column(BigInteger, primary_key=True)
    state = Column(Text, nullable=False)


class Fenced(Session):
    """A session that holds a lock: each of its transactions begins with the admission of its claim."""


@event.listens_for(Fenced, "after_begin")  # the fence
def admit(session, _transaction, connection):  # the fence
    connection.execute(text("SELECT fence.admit('shop.order', :key, :token, :grant)"), session.info)  # the fence


def send(session, order_id):
    order = session.get(Order, order_id)
    print(f"order {order_id} is {order.state}; press Enter to send it", flush=True)
    session.commit()  # Now the mark is raised: from here on every older holder is refused.
    sys.stdin.readline()  # However long this takes: the write below is refused once a newer holder has been here.
    order.state = f"sent by {session.info['grant']}"
    session.commit()
    print(f"order {order_id} {order.state}")


def main():
    order_id, token, grant = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    engine = create_engine(os.environ["DATABASE_URL"].replace("postgres://", "postgresql://", 1))
    try:
        with Fenced(engine, info={"key": str(order_id), "token": token, "grant": grant}) as session:
            send(session, order_id)
    except DBAPIError as error:
        if error.orig.pgcode != "ZF001":  # the fence
            raise
        # Terminal for this grant: no retry, and no newer token for work that was begun under this one.
        sys.exit(f"refused, {error.orig.pgcode}: {error.orig.diag.message_detail}")


main()
