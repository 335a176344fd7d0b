//! A slurmrestd that does what a test says, for what a real one cannot be made to do on demand.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use tower::util::BoxCloneSyncService;

use crate::client::{Client, Options, Transport};
use crate::token::NoToken;

pub(crate) const DESCRIPTION: &str = "/openapi/v3";

/// `answer` is given the path with its query.
pub(crate) fn client<F: Future<Output = (StatusCode, String)> + Send + 'static>(
    answer: impl Fn(String) -> F + Clone + Send + Sync + 'static,
) -> Client {
    let transport: Transport =
        BoxCloneSyncService::new(tower::service_fn(move |request: Request<Full<_>>| {
            let answer = answer(request.uri().path_and_query().unwrap().to_string());
            async move {
                let (status, text) = answer.await;
                let body = Full::<Bytes>::from(text).map_err(|never| match never {}).boxed_unsync();
                Ok(Response::builder().status(status).body(body).unwrap())
            }
        }));
    Client::with_transport(transport, "http://fake".to_owned(), Arc::new(NoToken), Options::new("test"))
}

/// What a server of these calls says of itself.
pub(crate) fn description(version: &str, calls: &[(Method, &str)]) -> (StatusCode, String) {
    let call = |(method, path): &(Method, &str)| {
        format!(r#""/slurm/{version}/{path}":{{"{}":{{}}}}"#, method.as_str().to_ascii_lowercase())
    };
    let paths: Vec<String> = calls.iter().map(call).collect();
    (StatusCode::OK, format!(r#"{{"paths":{{{}}}}}"#, paths.join(",")))
}
