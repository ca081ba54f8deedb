//! Why pods could not be had, or a Service not be loaded: what the cluster itself said of it, and what helps.

/// What went wrong, with which cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClusterError {
    /// The program that speaks with clusters is not there.
    #[error("kubectl is missing here")]
    NoKubectl,
    /// There is neither a kubeconfig nor a pod that we run in.
    #[error("no Kubernetes cluster is known here: the kubeconfig has no context, and this is no pod")]
    Unknown,
    /// A context that the kubeconfig does not have.
    #[error("the kubeconfig has no context {name:?}")]
    Context {
        /// What was asked for.
        name: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// A kubeconfig that cannot be used.
    #[error("the kubeconfig cannot be used: {why}")]
    Config {
        /// Why.
        why: String,
    },
    /// The API server does not answer.
    #[error("{server} does not answer: {why}")]
    Unreachable {
        /// Address of the API server.
        server: String,
        /// What came instead.
        why: String,
    },
    /// The API server does not know who we are.
    #[error("{server} does not accept these credentials: {message}")]
    Unauthorized {
        /// Address of the API server.
        server: String,
        /// What it said.
        message: String,
    },
    /// Rights that are missing, all of them, found before anything was made.
    #[error("not allowed in the namespace {namespace:?}: {}", missing.join(", "))]
    Rights {
        /// Where.
        namespace: String,
        /// Verb and resource of each, such as `create jobs.batch`.
        missing: Vec<String>,
        /// The file that has them.
        role: &'static str,
    },
    /// A right that was missing when it was needed.
    #[error("not allowed in the namespace {namespace:?}: {message}")]
    Forbidden {
        /// Where.
        namespace: String,
        /// What the API server said: who may not do what.
        message: String,
        /// The file that has the right.
        role: &'static str,
    },
    /// A namespace that is not there.
    #[error("there is no namespace {namespace:?} at {server}")]
    Namespace {
        /// Address of the API server.
        server: String,
        /// What was asked for.
        namespace: String,
    },
    /// The cluster does not take the Job, or makes no pods for it.
    #[error("the cluster refuses {what}: {message}")]
    Refused {
        /// `the Job`, `its pods`, …
        what: &'static str,
        /// What it said.
        message: String,
    },
    /// The cluster is older than what this needs.
    #[error("the cluster's Kubernetes is too old: it does not know {what} of a Job")]
    Old {
        /// The field that it dropped.
        what: &'static str,
    },
    /// An image that cannot be had.
    #[error("the image {image:?} cannot be had by {pod}: {reason}: {message}")]
    Image {
        /// The image.
        image: String,
        /// The pod that wanted it.
        pod: String,
        /// `ErrImagePull`, `InvalidImageName`, …
        reason: String,
        /// What the node said.
        message: String,
    },
    /// No node takes a pod.
    #[error("{count} of {wanted} pods find no node: {message}")]
    Unschedulable {
        /// Pods without one.
        count: usize,
        /// Pods that were asked for.
        wanted: u32,
        /// What the scheduler said.
        message: String,
    },
    /// A container that cannot be made on its node.
    #[error("{pod} on {node} cannot be made: {reason}: {message}")]
    Container {
        /// The pod.
        pod: String,
        /// Its node.
        node: String,
        /// `CreateContainerConfigError`, …
        reason: String,
        /// What the node said.
        message: String,
    },
    /// A pod that ended before anything was asked of it.
    #[error("{pod} on {node} ended before it got any load: {how}")]
    Ended {
        /// The pod.
        pod: String,
        /// Its node.
        node: String,
        /// Exit code, reason, last lines of its output.
        how: String,
    },
    /// Pods that were not there in time.
    #[error("after {seconds} s {state}")]
    Late {
        /// How long was waited.
        seconds: u64,
        /// What was there: `6 of 8 pods are running, …`.
        state: String,
    },
    /// A Service that cannot be loaded: it is not there, it has no such port, or no pod is behind it.
    #[error("{service}: {why}")]
    Service {
        /// Which, as `kubernetes://NAMESPACE/SERVICE`.
        service: String,
        /// Why not.
        why: String,
        /// What helps.
        hint: String,
    },
    /// The caller cancelled.
    #[error("it was cancelled")]
    Cancelled,
}

impl ClusterError {
    /// Whether it may be otherwise by itself some seconds later: an API server that is started anew is away first, and then does not
    /// know for a moment who may do what.
    pub(crate) fn may_pass(&self) -> bool {
        use ClusterError::*;
        matches!(self, Unreachable { .. } | Unauthorized { .. } | Rights { .. } | Forbidden { .. })
    }

    /// What helps, where that is known.
    pub fn hint(&self) -> Option<String> {
        use ClusterError::*;
        let hint = match self {
            NoKubectl => {
                "Proofload reaches clusters by kubectl, as it reaches hosts by ssh: https://kubernetes.io/docs/tasks/tools/"
                    .into()
            }
            Unknown => {
                "KUBECONFIG names the file, or it is ~/.kube/config; kubectl cluster-info uses the same one"
                    .into()
            }
            Context { known, .. } if known.is_empty() => "it has no contexts at all".into(),
            Context { known, .. } => format!("it has {}", known.join(", ")),
            Unreachable { .. } => {
                "kubectl cluster-info asks the same server; is a VPN or a proxy between?".into()
            }
            Unauthorized { .. } => "credentials expire: log in again as your cluster wants it".into(),
            Rights { namespace, role, .. } | Forbidden { namespace, role, .. } => {
                format!(
                    "{role} has all that is needed, and nothing else: kubectl apply --namespace {namespace} --filename {role}"
                )
            }
            Service { hint, .. } => hint.clone(),
            Namespace { namespace, .. } => format!("kubectl create namespace {namespace}"),
            Refused { message, .. } if message.contains("exceeded quota") => {
                "fewer pods or smaller resources, or a larger quota: kubectl describe quota".into()
            }
            Old { .. } => "Kubernetes 1.29 and later do".into(),
            Image { reason, .. } if reason == "InvalidImageName" => {
                "an image is named as registry/name:tag, in lower case".into()
            }
            Image { .. } => "is the name right, and may the nodes pull it? The Dockerfile makes it".into(),
            Unschedulable { .. } => {
                "fewer pods, smaller resources, or another node_selector: kubectl describe nodes".into()
            }
            Late { .. } => "kubectl get pods and kubectl get events tell more".into(),
            Config { .. } | Refused { .. } | Container { .. } | Ended { .. } | Cancelled => return None,
        };
        Some(hint)
    }
}
