//! What is proven and how it is run: a foreign program, described by data alone.
//!
//! The kit knows no resource. `fence.toml` names the commands, the requests and the tables of one, in texts that may hold
//! placeholders (see [`Template`]); everything here is that description, already parsed.

mod front;
mod holder;
mod model;
mod place;
mod template;
mod transport;

pub use front::{Front, RequestForm};
pub use holder::{GateName, Holder, Variant, Variants};
pub use model::{
    ClassProof, Defeat, Guard, LedgerWrites, MoveColumns, Read, Replacement, Resource, Step, Target,
};
pub use place::{Place, PlaceStep};
pub use template::{MissingValue, ParseTemplateError, Template, Values};
pub use transport::{Http, Proxy, Transport, UnknownTransport};
