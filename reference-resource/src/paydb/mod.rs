//! The payments service.
//!
//! | route | what it does |
//! |---|---|
//! | `POST /accounts {"id","balance"}` | makes an account |
//! | `GET /accounts/{id}` | `{"id","balance"}` |
//! | `POST /accounts/{id}/transfers {"to","amount","reference"}` | moves money; needs `Fencing-Token` and `Idempotency-Key` |
//! | `GET /accounts/{id}/transfers` | what the account has sent, in order |
//! | `GET /accounts/{id}/jobs` | what the account is to send later, and what became of it |
//! | `POST /accounts/{id}/fence` | commits the raised mark and answers 204; needs `Fencing-Token` |
//! | `GET /healthz` | 204 while the database answers |
//! | `GET /metrics` | counters for Prometheus: refusals by class and reason, marks raised, time blocked |
//! | `GET /openapi.json` | all of this as OpenAPI 3.1 |
//!
//! Amounts are integers in minor units. The class of the tokens is `paydb.account`, its key the account in the path.
//!
//! A transfer with `Prefer: respond-async` is answered 202 and made by `paydb-jobs`, whenever that runs: its claim is admitted
//! where it is accepted, kept with it, and admitted once more where it is made. 202 is not done: a holder keeps its lock until
//! the job is, or is refused, and reads which it came to.
//!
//! A completed idempotency key gets its stored answer, also from a holder that has been fenced since; anything else is
//! fenced first. Only then is the request judged by its own merits, and a request refused for those (an unknown account, too
//! little money) commits its admission all the same. A request never waits for its body inside a transaction, so what is
//! decided is decided at the end, when all of it is there. A body is waited for 60 s, a request's head 75 s; once the
//! service stops, a head only 1 s.
//!
//! Of the requests on one account 4 are at the database at a time, so that an account that is blocked leaves connections to the
//! others; those behind them wait for 2 s at most and are then told that it is blocked.

mod accounts;
mod answer;
mod app;
mod connect;
mod deadline;
mod jobs;
mod ledger;
mod metrics;
mod observe;
mod options;
mod order;
mod router;
mod run;
mod schema;
mod serve;
mod transfers;
mod turns;
mod work;

pub use connect::ConnectError;
pub use options::{JobsOptions, Options};
pub use run::{EXIT_CODES, RunError, run};
pub use work::{JOBS_EXIT_CODES, JobsError, work};
