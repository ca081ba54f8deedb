//! All requests to the API server, each with a time limit, and errors that say what is wrong.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::error::ClusterError;
use super::http::{self, Response};
use super::kubectl::{self, Cluster, Proxy};
use super::objects::{AccessReview, EndpointSlice, Event, Job, List, Pod, Service, Status};

/// What has to be allowed in a namespace, and the file that allows it.
pub(super) struct Rights {
    /// Below the folder of the project.
    pub role: &'static str,
    /// Verb, group, resource, subresource: what the file has, and no more.
    all: &'static [(&'static str, &'static str, &'static str, &'static str)],
}

/// All that is done for generators.
pub(super) const OF_GENERATORS: Rights = Rights {
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

/// All that is done to load a Service that runs already.
pub(super) const OF_SERVICES: Rights = Rights {
    role: "deploy/kubernetes/service-role.yaml",
    all: &[
        ("get", "", "services", ""),
        ("list", "discovery.k8s.io", "endpointslices", ""),
        ("list", "", "pods", ""),
    ],
};

/// A namespace of a cluster, with the rights that are needed there.
#[derive(Clone)]
pub(super) struct Namespace {
    /// Its name.
    pub name: String,
    server: String,
    rights: &'static Rights,
    proxy: Arc<Proxy>,
}

impl Namespace {
    /// Finds it as `kubectl` does, and whether all that will be done there is allowed: what may not be deleted must not be made.
    ///
    /// # Errors
    /// If there is no such context, the API server does not answer, or rights are missing.
    pub fn find(
        context: Option<&str>,
        name: Option<&str>,
        rights: &'static Rights,
    ) -> Result<Namespace, ClusterError> {
        let Cluster { server, namespace } = kubectl::cluster(context)?;
        let name = name.map_or(namespace, str::to_owned);
        let namespace = Namespace { name, server, rights, proxy: Proxy::of(context)? };
        namespace.check_rights()?;
        Ok(namespace)
    }

    fn check_rights(&self) -> Result<(), ClusterError> {
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
            match self.send::<AccessReview>("a review of rights", "POST", path, Some(&review)) {
                Ok(review) if review.status.allowed => {}
                Ok(_) => missing.push(right(verb, group, resource, subresource)),
                // Without the right to ask, what is refused later says what is missing.
                Err(ClusterError::Forbidden { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        let (namespace, role) = (self.name.clone(), self.rights.role);
        if missing.is_empty() { Ok(()) } else { Err(ClusterError::Rights { namespace, missing, role }) }
    }

    pub fn create(&self, job: &Value) -> Result<Job, ClusterError> {
        self.send("the Job", "POST", &self.path("/apis/batch/v1", "jobs"), Some(job))
    }

    /// Deletes a Job and, in the background, its pods. One that is not there is deleted.
    pub fn delete(&self, name: &str) -> Result<(), ClusterError> {
        let path = format!("{}/{name}", self.path("/apis/batch/v1", "jobs"));
        let with_pods = json!({ "propagationPolicy": "Background" });
        match self.exchange("the end of the Job", "DELETE", &path, Some(&with_pods))? {
            Response { status: 404, .. } => Ok(()),
            response => self.read::<Value>("the end of the Job", response).map(drop),
        }
    }

    pub fn pods_of(&self, job: &str) -> Result<Vec<Pod>, ClusterError> {
        self.pods("a list of its pods", "labelSelector", &format!("batch.kubernetes.io/job-name={job}"))
    }

    /// A pod by its name; `None` where it is gone.
    pub fn pod(&self, name: &str) -> Result<Option<Pod>, ClusterError> {
        let pods = self.pods("one of its pods", "fieldSelector", &format!("metadata.name={name}"))?;
        Ok(pods.into_iter().next())
    }

    /// The pods that a Service's selector chooses.
    pub fn pods_selected(&self, selector: &str) -> Result<Vec<Pod>, ClusterError> {
        self.pods("the pods of the Service", "labelSelector", selector)
    }

    fn pods(&self, what: &'static str, by: &str, selector: &str) -> Result<Vec<Pod>, ClusterError> {
        self.list(what, &format!("{}?{by}={}", self.path("/api/v1", "pods"), encoded(selector)))
    }

    /// Why the cluster made no more pods for a Job, where it says so.
    pub fn refusal(&self, job: &str) -> Result<Option<String>, ClusterError> {
        let of_job = format!("involvedObject.kind=Job,involvedObject.name={job},reason=FailedCreate");
        let path = format!("{}?fieldSelector={}", self.path("/api/v1", "events"), encoded(&of_job));
        let events: Vec<Event> = self.list("events", &path)?;
        Ok(events.into_iter().filter_map(|event| event.message).next_back())
    }

    /// A Service by its name; `None` where there is none.
    pub fn service(&self, name: &str) -> Result<Option<Service>, ClusterError> {
        let path = format!("{}/{}", self.path("/api/v1", "services"), encoded(name));
        match self.exchange("the Service", "GET", &path, None)? {
            Response { status: 404, .. } => Ok(None),
            response => self.read("the Service", response).map(Some),
        }
    }

    /// The names of all Services; none where they may not be listed, which nothing but a hint asks for.
    pub fn service_names(&self) -> Vec<String> {
        let services: Result<Vec<Service>, _> =
            self.list("a list of Services", &self.path("/api/v1", "services"));
        services.unwrap_or_default().into_iter().map(|service| service.metadata.name).collect()
    }

    /// Where a Service leads to.
    pub fn endpoints(&self, service: &str) -> Result<Vec<EndpointSlice>, ClusterError> {
        let of_it = encoded(&format!("kubernetes.io/service-name={service}"));
        let slices = self.path("/apis/discovery.k8s.io/v1", "endpointslices");
        self.list("the endpoints of the Service", &format!("{slices}?labelSelector={of_it}"))
    }

    /// A connection to `kubectl proxy`, and the path there at which a pod's container is attached to.
    pub fn attach_point(&self, pod: &str, container: &str) -> Result<(UnixStream, String), ClusterError> {
        let pod = format!("{}/{pod}", self.path("/api/v1", "pods"));
        let path = format!("{pod}/attach?container={container}&stdin=true&stdout=true&stderr=true");
        let stream = self.proxy.connect().map_err(|error| self.unreachable(error.to_string()))?;
        Ok((stream, path))
    }

    fn path(&self, api: &str, resource: &str) -> String {
        format!("{api}/namespaces/{}/{resource}", encoded(&self.name))
    }

    fn list<T: DeserializeOwned>(&self, what: &'static str, path: &str) -> Result<Vec<T>, ClusterError> {
        Ok(self.send::<List<T>>(what, "GET", path, None)?.items)
    }

    fn send<T: DeserializeOwned>(
        &self,
        what: &'static str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, ClusterError> {
        let response = self.exchange(what, method, path, body)?;
        self.read(what, response)
    }

    fn exchange(
        &self,
        what: &'static str,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Response, ClusterError> {
        let body = body.map(Value::to_string);
        let exchanged = self
            .proxy
            .connect()
            .and_then(|stream| http::exchange(stream, method, path, body.as_deref().map(str::as_bytes)));
        exchanged.map_err(|error| self.unreachable(format!("{what}: {error}")))
    }

    fn read<T: DeserializeOwned>(&self, what: &'static str, response: Response) -> Result<T, ClusterError> {
        if !(200..300).contains(&response.status) {
            return Err(self.refused(what, response.status, &response.body));
        }
        serde_json::from_slice(&response.body)
            .map_err(|error| self.unreachable(format!("{what}: not understood: {error}")))
    }

    /// What a response that is no success means. What is no object of Kubernetes comes from `kubectl proxy`, which did not get there.
    pub fn refused(&self, what: &'static str, code: u16, body: &[u8]) -> ClusterError {
        let (server, namespace) = (self.server.clone(), self.name.clone());
        let Ok(Status { message, details }) = serde_json::from_slice(body) else {
            return self.unreachable(String::from_utf8_lossy(body).trim().to_owned());
        };
        match code {
            401 => ClusterError::Unauthorized { server, message },
            // What RBAC says has "cannot" in it; a quota and other admission are 403, too.
            403 if message.contains(" cannot ") => {
                ClusterError::Forbidden { namespace, message, role: self.rights.role }
            }
            // There, and not ready.
            429 | 503 | 504 => self.unreachable(message),
            404 if details.kind == "namespaces" => ClusterError::Namespace { server, namespace },
            _ => ClusterError::Refused { what, message },
        }
    }

    pub fn unreachable(&self, why: String) -> ClusterError {
        ClusterError::Unreachable { server: self.server.clone(), why }
    }
}

fn right(verb: &str, group: &str, resource: &str, subresource: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    let slash = if subresource.is_empty() { "" } else { "/" };
    format!("{verb} {resource}{slash}{subresource}{dot}{group}")
}

/// A text as part of a URL (RFC 3986, section 2.1).
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_and_rights_are_written_as_kubernetes_wants_them() {
        assert_eq!(encoded("a.io/b=c d,é"), "a.io%2Fb%3Dc%20d%2C%C3%A9");
        assert_eq!(right("create", "", "pods", "attach"), "create pods/attach");
        assert_eq!(
            right("list", "discovery.k8s.io", "endpointslices", ""),
            "list endpointslices.discovery.k8s.io"
        );
    }
}
