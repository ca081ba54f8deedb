//! What is asked of the API server about a Service and what stands behind it. It changes nothing there.

use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};

use super::Namespace;
use crate::kubernetes::error::ClusterError;

impl Namespace {
    /// A Service by its name; `None` where there is none.
    pub(in crate::kubernetes) async fn service(&self, name: &str) -> Result<Option<Service>, ClusterError> {
        let services: Api<Service> = Api::namespaced(self.client.clone(), &self.name);
        self.ask("the Service", services.get_opt(name)).await
    }

    /// The names of all Services; none where they may not be listed, which nothing but a hint asks for.
    pub(in crate::kubernetes) async fn service_names(&self) -> Vec<String> {
        let services: Api<Service> = Api::namespaced(self.client.clone(), &self.name);
        let listed = self.ask("a list of Services", services.list(&ListParams::default())).await;
        let all = listed.map(|listed| listed.items).unwrap_or_default();
        all.into_iter().filter_map(|service| service.metadata.name).collect()
    }

    /// Where a Service leads to.
    pub(in crate::kubernetes) async fn endpoints(
        &self,
        service: &str,
    ) -> Result<Vec<EndpointSlice>, ClusterError> {
        let slices: Api<EndpointSlice> = Api::namespaced(self.client.clone(), &self.name);
        let of_it = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
        Ok(self.ask("the endpoints of the Service", slices.list(&of_it)).await?.items)
    }

    /// The pods that a selector chooses.
    pub(in crate::kubernetes) async fn pods_selected(
        &self,
        selector: &str,
    ) -> Result<Vec<Pod>, ClusterError> {
        let chosen = ListParams::default().labels(selector);
        Ok(self.ask("the pods of the Service", self.pods.list(&chosen)).await?.items)
    }
}
