// The main job in Go, as ../src/main-job.ts does it in TypeScript, through a client that oapi-codegen makes of the OpenAPI
// document. Prints what it was answered as JSON. The package client is beside it while the test runs.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"typed-client/client"
)

type gone struct {
	Status  int              `json:"status"`
	Failure *client.NotFound `json:"failure"`
}

type done struct {
	Node     client.CreatedNode     `json:"node"`
	Upstream client.SavedL4Upstream `json:"upstream"`
	Plan     client.L4ChainPlan     `json:"plan"`
	Deployed client.DeployedL4Chain `json:"deployed"`
	Config   client.NodeSnapshot    `json:"config"`
	Actions  []string               `json:"actions"`
	Gone     gone                   `json:"gone"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// answer is the answer of a success; the program ends with the service's own sentence for anything else.
func answer[T any](parsed *T, body []byte) *T {
	if parsed == nil {
		check(fmt.Errorf("refused: %s", body))
	}
	return parsed
}

func pointer[T any](value T) *T { return &value }

func main() {
	server, username, password := os.Args[1], os.Args[2], os.Args[3]
	ctx := context.Background()
	var token string
	api, err := client.NewClientWithResponses(server, client.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}))
	check(err)

	signedIn, err := api.SignInWithResponse(ctx, nil, client.SignIn{Username: username, Password: password})
	check(err)
	token = *answer(signedIn.JSON200, signedIn.Body).Data.Token

	var did done
	node, err := api.CreateNodeWithResponse(ctx, &client.CreateNodeParams{IdempotencyKey: pointer("main-job-in-go")}, client.NewNode{
		Name: "edge-1", Address: pointer("edge-1.example"), Labels: &map[string]string{"region": "eu"},
	})
	check(err)
	did.Node = answer(node.JSON201, node.Body).Data

	upstream, err := api.CreateL4UpstreamWithResponse(ctx, nil, client.NewL4Upstream{Name: "app", Endpoint: "app.example:8443"})
	check(err)
	did.Upstream = answer(upstream.JSON201, upstream.Body).Data

	var target client.Target
	check(target.FromUpstreamTarget(client.UpstreamTarget{UpstreamId: did.Upstream.Id}))
	chain, err := api.CreateL4ChainWithResponse(ctx, nil, client.NewL4Chain{
		Name:    "front",
		Payload: client.NewL4ChainPayloadTcp,
		Hops:    []client.Hop{{NodeId: did.Node.Id, ListenPort: 443, Outer: client.HopOuterTcp, Security: client.HopSecurityRaw}},
		Target:  target,
	})
	check(err)
	id := answer(chain.JSON201, chain.Body).Data.Id

	plan, err := api.PlanL4ChainWithResponse(ctx, id, nil)
	check(err)
	did.Plan = answer(plan.JSON200, plan.Body).Data

	deployed, err := api.DeployL4ChainWithResponse(ctx, id, &client.DeployL4ChainParams{
		Wait: pointer(client.DeployL4ChainParamsWaitApplied), TimeoutMs: pointer(0), IfMatch: pointer(plan.HTTPResponse.Header.Get("ETag")),
	})
	check(err)
	did.Deployed = answer(deployed.JSON200, deployed.Body).Data

	config, err := api.GetNodeConfigWithResponse(ctx, did.Node.Id, nil)
	check(err)
	did.Config = answer(config.JSON200, config.Body).Data

	audit, err := api.ListAuditEntriesWithResponse(ctx, &client.ListAuditEntriesParams{ResourceId: pointer(id.String()), PageSize: pointer(10)})
	check(err)
	for _, entry := range answer(audit.JSON200, audit.Body).Data.Items {
		did.Actions = append(did.Actions, entry.Action)
	}

	noChain, err := api.DeleteL4ChainWithResponse(ctx, id, &client.DeleteL4ChainParams{IfMatch: pointer("*")})
	check(err)
	answer(noChain.JSON200, noChain.Body)
	noUpstream, err := api.DeleteL4UpstreamWithResponse(ctx, did.Upstream.Id, nil)
	check(err)
	answer(noUpstream.JSON200, noUpstream.Body)
	noNode, err := api.DeleteNodeWithResponse(ctx, did.Node.Id, nil)
	check(err)
	answer(noNode.JSON200, noNode.Body)

	after, err := api.GetNodeWithResponse(ctx, did.Node.Id, nil)
	check(err)
	did.Gone = gone{Status: after.StatusCode(), Failure: after.JSON404}
	check(json.NewEncoder(os.Stdout).Encode(did))
}
