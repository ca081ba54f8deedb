//! Requests to the API server, each with a timeout and with errors that name the cause.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::text::{self, percent_encoded};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::kubernetes::attach::{Cluster, Proxy, cluster};
use crate::kubernetes::pods::{self, CONTAINER};
use crate::{Blame, Error};

/// Permissions required in a namespace, and the file that grants them.
#[derive(Debug)]
pub(super) struct NamespaceRights {
    /// Path relative to the root of the project.
    pub role: &'static str,
    /// Verb, group, resource and subresource of each permission. The file grants exactly these.
    all: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

/// Permissions for generators.
pub(super) const OF_GENERATORS: NamespaceRights = NamespaceRights {
    role: "deploy/kubernetes/role.yaml",
    all: &[
        ("create", "batch", "jobs", ""),
        ("delete", "batch", "jobs", ""),
        ("list", "", "pods", ""),
        ("get", "", "pods", "attach"),
        ("create", "", "pods", "attach"),
        ("list", "", "events", ""),
    ],
};

/// Permissions to load a Service that already runs.
pub(super) const OF_SERVICES: NamespaceRights = NamespaceRights {
    role: "deploy/kubernetes/service-role.yaml",
    all: &[
        ("get", "", "services", ""),
        ("list", "discovery.k8s.io", "endpointslices", ""),
        ("list", "", "pods", ""),
    ],
};

/// A namespace of a cluster, with the permissions required there.
#[derive(Debug, Clone)]
pub(super) struct Namespace {
    pub name: String,
    /// Name of the context. `None` in a pod without a kubeconfig.
    pub context: Option<String>,
    server: String,
    rights: &'static NamespaceRights,
    proxy: Arc<Proxy>,
}

impl Namespace {
    /// Finds the namespace as `kubectl` does, and checks that all required requests are allowed. Nothing is
    /// created that could not be deleted later.
    ///
    /// # Errors
    /// If there is no such context, the API server does not answer, or permissions are missing.
    pub fn find(
        context: Option<&str>,
        name: Option<&str>,
        rights: &'static NamespaceRights,
    ) -> Result<Namespace, Error> {
        let Cluster {
            server,
            namespace,
            context: found,
        } = cluster(context)?;
        let name = name.map_or(namespace, str::to_owned);
        // By the resolved name, because the current context may change meanwhile.
        let proxy = Proxy::of(found.as_deref())?;
        let namespace = Namespace {
            name,
            context: found,
            server,
            rights,
            proxy,
        };
        namespace.check_rights()?;
        Ok(namespace)
    }

    fn check_rights(&self) -> Result<(), Error> {
        let mut missing = Vec::new();
        for (verb, group, resource, subresource) in self.rights.all {
            let attributes = json!({
                "namespace": self.name, "verb": verb, "group": group, "resource": resource, "subresource": subresource,
            });
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": { "resourceAttributes": attributes },
            });
            let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
            match self.send::<Value>("review permissions", "POST", path, Some(&review)) {
                Ok(review) if review["status"]["allowed"] == true => {}
                Ok(_) => missing.push(right(verb, group, resource, subresource)),
                // The user may not review permissions. A request refused later names the missing permission.
                Err(error) if *error.blame() == Blame::Rights => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if missing.is_empty() {
            Ok(())
        } else {
            Err(self.forbidden(&missing.join(", ")))
        }
    }

    pub fn create(&self, job: &Value) -> Result<Value, Error> {
        self.send(
            "create the Job",
            "POST",
            &self.path("/apis/batch/v1", "jobs"),
            Some(job),
        )
    }

    /// Deletes a Job and, in the background, its pods. Succeeds if there is no such Job.
    pub fn delete(&self, name: &str) -> Result<(), Error> {
        let path = format!("{}/{name}", self.path("/apis/batch/v1", "jobs"));
        let with_pods = json!({ "propagationPolicy": "Background" });
        match self.exchange("delete the Job", "DELETE", &path, Some(&with_pods))? {
            ApiResponse { status: 404, .. } => Ok(()),
            response => self.read::<Value>("delete the Job", response).map(drop),
        }
    }

    pub fn pods_of(&self, job: &str) -> Result<Vec<Pod>, Error> {
        self.pods(
            "list the pods",
            "labelSelector",
            &format!("batch.kubernetes.io/job-name={job}"),
        )
    }

    /// Returns a pod by its name, or `None` if it is gone.
    pub fn pod(&self, name: &str) -> Result<Option<Pod>, Error> {
        let pods = self.pods(
            "list the pods",
            "fieldSelector",
            &format!("metadata.name={name}"),
        )?;
        Ok(pods.into_iter().next())
    }

    /// The pods that match the selector of a Service.
    pub fn pods_selected(&self, selector: &str) -> Result<Vec<Pod>, Error> {
        self.pods("list the pods of the Service", "labelSelector", selector)
    }

    fn pods(&self, what: &'static str, by: &str, selector: &str) -> Result<Vec<Pod>, Error> {
        self.list(
            what,
            &format!(
                "{}?{by}={}",
                self.path("/api/v1", "pods"),
                percent_encoded(selector)
            ),
        )
    }

    /// Why the cluster created no more pods for a Job, if an event reports it.
    pub fn refusal(&self, job: &str) -> Result<Option<String>, Error> {
        let of_job =
            format!("involvedObject.kind=Job,involvedObject.name={job},reason=FailedCreate");
        let path = format!(
            "{}?fieldSelector={}",
            self.path("/api/v1", "events"),
            percent_encoded(&of_job)
        );
        let events: Vec<Value> = self.list("list events", &path)?;
        Ok(events
            .iter()
            .rev()
            .find_map(|event| Some(event["message"].as_str()?.to_owned())))
    }

    /// Returns a Service by its name, or `None` if there is none.
    pub fn service(&self, name: &str) -> Result<Option<Service>, Error> {
        let path = format!(
            "{}/{}",
            self.path("/api/v1", "services"),
            percent_encoded(name)
        );
        match self.exchange("read the Service", "GET", &path, None)? {
            ApiResponse { status: 404, .. } => Ok(None),
            response => self.read("read the Service", response).map(Some),
        }
    }

    /// Names of all Services, which are used only in a hint. Empty if they may not be listed.
    pub fn service_names(&self) -> Vec<String> {
        let services: Result<Vec<Service>, _> =
            self.list("list Services", &self.path("/api/v1", "services"));
        services
            .unwrap_or_default()
            .into_iter()
            .map(|service| service.metadata.name)
            .collect()
    }

    /// The endpoints of a Service.
    pub fn endpoints(&self, service: &str) -> Result<Vec<EndpointSlice>, Error> {
        let of_it = percent_encoded(&format!("kubernetes.io/service-name={service}"));
        let slices = self.path("/apis/discovery.k8s.io/v1", "endpointslices");
        self.list(
            "list the endpoints of the Service",
            &format!("{slices}?labelSelector={of_it}"),
        )
    }

    /// Connects to `kubectl proxy`. Returns the connection and the path that attaches to our container of a
    /// pod.
    pub fn attach_point(&self, pod: &str) -> Result<(UnixStream, String), Error> {
        let pod = format!("{}/{pod}", self.path("/api/v1", "pods"));
        let path = format!("{pod}/attach?container={CONTAINER}&stdin=true&stdout=true&stderr=true");
        let stream = self
            .proxy
            .connect()
            .map_err(|error| self.unreachable(error.to_string()))?;
        Ok((stream, path))
    }

    fn path(&self, api: &str, resource: &str) -> String {
        format!(
            "{api}/namespaces/{}/{resource}",
            percent_encoded(&self.name)
        )
    }

    fn list<T: DeserializeOwned>(&self, what: &'static str, path: &str) -> Result<Vec<T>, Error> {
        Ok(self.send::<ApiList<T>>(what, "GET", path, None)?.items)
    }

    fn send<T: DeserializeOwned>(
        &self,
        what: &'static str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, Error> {
        let response = self.exchange(what, method, path, body)?;
        self.read(what, response)
    }

    fn exchange(
        &self,
        what: &'static str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<ApiResponse, Error> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let exchanged = self
            .proxy
            .connect()
            .and_then(|stream| exchange(stream, method, path, &body));
        exchanged.map_err(|error| self.unreachable(format!("cannot {what}: {error}")))
    }

    fn read<T: DeserializeOwned>(
        &self,
        what: &'static str,
        response: ApiResponse,
    ) -> Result<T, Error> {
        if !(200..300).contains(&response.status) {
            return Err(self.refused(what, response.status, &response.body));
        }
        serde_json::from_slice(&response.body)
            .map_err(|error| self.unreachable(format!("cannot {what}: invalid response: {error}")))
    }

    /// Maps an unsuccessful response to an error. A body that is not a Kubernetes object comes from `kubectl
    /// proxy`, which did not reach the API server.
    pub fn refused(&self, what: &'static str, code: u16, body: &[u8]) -> Error {
        let (server, namespace) = (&self.server, &self.name);
        let Ok(Status { message, details }) = serde_json::from_slice(body) else {
            // The body may be an error page of a proxy.
            return self.unreachable(text::shown(&text::line(
                String::from_utf8_lossy(body).trim(),
            )));
        };
        match code {
            401 => Error::new(format!("{server} rejected the credentials: {message}"))
                .by(Blame::Rights)
                .help("the credentials may have expired: log in to the cluster again"),
            // Messages of RBAC contain "cannot". Quotas and other admission also respond with 403.
            403 if message.contains(" cannot ") => self.forbidden(&message),
            // The server is reachable but not ready.
            429 | 503 | 504 => self.unreachable(message),
            404 if details.kind == "namespaces" => {
                Error::new(format!("{server} has no namespace {namespace:?}")).help(format!(
                    "to create it, run: kubectl create namespace {namespace}"
                ))
            }
            _ => pods::refused(what, &message),
        }
    }

    fn forbidden(&self, what: &str) -> Error {
        let (namespace, role) = (&self.name, self.rights.role);
        let apply = format!("kubectl apply --namespace {namespace} --filename {role}");
        Error::new(format!(
            "not allowed in the namespace {namespace:?}: {what}"
        ))
        .by(Blame::Rights)
        .help(format!(
            "{role} grants exactly the required permissions: {apply}"
        ))
    }

    pub fn unreachable(&self, why: String) -> Error {
        Error::new(format!("{} does not answer: {why}", self.server))
            .by(Blame::Away)
            .help("check with: kubectl cluster-info. Is a VPN or proxy required?")
    }
}

fn right(verb: &str, group: &str, resource: &str, subresource: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{verb} {resource}{slash}{subresource}{dot}{group}")
}

// One request to the API server over one connection to `kubectl proxy`, with limits on time and size.
//
// HTTP/1.0, so that the end of the connection ends the body: no chunks, and no keep-alive. Connections to a
// local process are cheap, and the proxy reuses its connections to the API server.

/// Timeout for the whole response.
const RESPONSE_MAX: Duration = Duration::from_secs(10);
/// Maximum size of a response. A list of thousands of pods is about ten megabytes.
const BODY_BYTES_MAX: usize = 128 << 20;
const HEADERS_MAX: usize = 64;
const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug, PartialEq, Eq)]
struct ApiResponse {
    status: u16,
    body: Vec<u8>,
}

/// Sends a request, with a JSON body unless `body` is empty, and reads the whole response.
fn exchange(
    mut stream: UnixStream,
    method: &str,
    path: &str,
    body: &str,
) -> io::Result<ApiResponse> {
    let deadline = Instant::now() + RESPONSE_MAX;
    stream.set_write_timeout(Some(RESPONSE_MAX))?;
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let (mut bytes, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return parsed(&bytes),
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            Err(error) => return Err(error),
        }
        if bytes.len() > BODY_BYTES_MAX {
            return Err(unfit(format!(
                "the response exceeds {BODY_BYTES_MAX} bytes"
            )));
        }
    }
}

pub(super) fn late() -> io::Error {
    io::Error::new(
        io::ErrorKind::TimedOut,
        format!("no response within {} s", RESPONSE_MAX.as_secs()),
    )
}

fn parsed(bytes: &[u8]) -> io::Result<ApiResponse> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Err(unfit("the response was cut off".into())),
        Err(error) => return Err(unfit(format!("not an HTTP response: {error}"))),
    };
    let body = bytes[length..].to_vec();
    let lengths = head
        .headers
        .iter()
        .filter(|header| model::header::is_same(header.name, "content-length"));
    let announced = lengths
        .filter_map(|header| {
            std::str::from_utf8(header.value)
                .ok()?
                .parse::<usize>()
                .ok()
        })
        .next();
    if announced.is_some_and(|announced| body.len() < announced) {
        return Err(unfit("the response was cut off".into()));
    }
    Ok(ApiResponse {
        status: head.code.unwrap_or(0),
        body,
    })
}

fn unfit(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

// The fields of Kubernetes objects that are used here. Missing and null fields are read as empty.

fn null_is_empty<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[derive(Debug, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub(super) struct ApiList<T> {
    #[serde(default, deserialize_with = "null_is_empty")]
    pub items: Vec<T>,
}

/// Structs in which every field may be missing or null.
macro_rules! objects {
    ($($(#[$of_object:meta])* $object:ident { $($(#[$of_field:meta])* $field:ident: $kind:ty,)* })*) => { $(
        $(#[$of_object])*
        #[derive(Debug, Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        pub(super) struct $object { $(
            $(#[$of_field])*
            #[serde(deserialize_with = "null_is_empty")]
            pub $field: $kind,
        )* }
    )* };
}

objects! {
    /// Sent by an API server in place of an object.
    Status { message: String, details: StatusDetails, }
    StatusDetails {
        /// The resource concerned, for example `namespaces`.
        kind: String,
    }
    Metadata {
        name: String,
        uid: String,
        annotations: BTreeMap<String, String>,
        deletion_timestamp: Option<String>,
    }
    Pod { metadata: Metadata, spec: PodSpec, status: PodStatus, }
    PodSpec { node_name: String, }
    PodStatus {
        phase: String,
        reason: String,
        message: String,
        conditions: Vec<Condition>,
        container_statuses: Vec<ContainerStatus>,
    }
    Condition {
        #[serde(rename = "type")]
        kind: String,
        status: String,
        reason: String,
        message: String,
    }
    ContainerStatus {
        name: String,
        state: ContainerState,
        restart_count: u32,
        image: String,
        #[serde(rename = "imageID")]
        image_id: String,
    }
    ContainerState {
        running: Option<IgnoredAny>,
        waiting: Option<Waiting>,
        terminated: Option<Terminated>,
    }
    Waiting { reason: String, message: String, }
    Terminated { exit_code: i32, reason: String, message: String, }
    Service { metadata: Metadata, spec: ServiceSpec, }
    ServiceSpec {
        #[serde(rename = "type")]
        kind: String,
        external_name: String,
        #[serde(rename = "clusterIP")]
        cluster_ip: String,
        ports: Vec<ServicePort>,
        selector: BTreeMap<String, String>,
    }
    ServicePort {
        name: Option<String>,
        port: u16,
        /// `None` means TCP.
        protocol: Option<String>,
    }
    EndpointSlice { address_type: String, ports: Vec<EndpointPort>, endpoints: Vec<Endpoint>, }
    EndpointPort { name: Option<String>, port: Option<u16>, }
    Endpoint {
        addresses: Vec<String>,
        node_name: Option<String>,
        target_ref: Option<TargetRef>,
        conditions: EndpointConditions,
    }
    TargetRef { kind: String, name: String, uid: String, }
    EndpointConditions { ready: Option<bool>, }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_and_rights_are_written_as_kubernetes_wants_them() {
        assert_eq!(percent_encoded("a.io/b=c d,é"), "a.io%2Fb%3Dc%20d%2C%C3%A9");
        assert_eq!(right("create", "", "pods", "attach"), "create pods/attach");
        let slices = right("list", "discovery.k8s.io", "endpointslices", "");
        assert_eq!(slices, "list endpointslices.discovery.k8s.io");
    }

    fn answered(response: &[u8]) -> io::Result<ApiResponse> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(response).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        exchange(ours, "POST", "/api", "{}")
    }

    #[test]
    fn a_response_is_whole_or_an_error() {
        let whole = answered(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}").unwrap();
        assert_eq!(
            whole,
            ApiResponse {
                status: 403,
                body: b"{}".to_vec()
            }
        );
        let without_length = answered(b"HTTP/1.0 200 OK\r\n\r\n[1]").unwrap();
        assert_eq!(
            (without_length.status, without_length.body.as_slice()),
            (200, &b"[1]"[..])
        );
        for cut in [
            &b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n[1]"[..],
            b"HTTP/1.0 200",
            b"",
        ] {
            assert!(answered(cut).unwrap_err().to_string().contains("cut off"));
        }
        assert!(
            answered(b"SSH-2.0-OpenSSH\r\n\r\n")
                .unwrap_err()
                .to_string()
                .contains("not an HTTP response")
        );
    }
}
