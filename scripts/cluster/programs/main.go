// One program with everything that a Kubernetes cluster is made of, so that tests have a real one without downloading any: the name of
// the component comes first, its own flags after it.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// A component's command may read os.Args when it is made, so none is made before it is asked for.
var components = map[string]func() *cobra.Command{
	"kube-apiserver":          func() *cobra.Command { return apiserver.NewAPIServerCommand() },
	"kube-controller-manager": func() *cobra.Command { return controllers.NewControllerManagerCommand() },
	"kube-proxy":              func() *cobra.Command { return proxy.NewProxyCommand() },
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand() },
	"kubectl":                 func() *cobra.Command { return cmd.NewDefaultKubectlCommand() },
}

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	component := os.Args[1]
	os.Args = append([]string{component}, os.Args[2:]...)
	if component == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command, known := components[component]
	if !known {
		usage()
	}
	if component == "kubectl" {
		// It prints its own errors.
		if err := cli.RunNoErrOutput(command()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(cli.Run(command()))
}

func usage() {
	names := []string{"etcd"}
	for name := range components {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: kubernetes %s FLAGS...\n", strings.Join(names, "|"))
	os.Exit(2)
}
