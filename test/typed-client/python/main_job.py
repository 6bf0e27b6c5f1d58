"""The main job in Python, as ../src/main-job.ts does it in TypeScript, through a client that openapi-python-client makes of
the OpenAPI document. Prints what it was answered as JSON."""

import json
import sys

from gateway_control_service_client import AuthenticatedClient, Client
from gateway_control_service_client.api.audit import list_audit_entries
from gateway_control_service_client.api.auth import sign_in
from gateway_control_service_client.api.l4_chains import create_l4_chain, delete_l4_chain, deploy_l4_chain, plan_l4_chain
from gateway_control_service_client.api.l4_upstreams import create_l4_upstream, delete_l4_upstream
from gateway_control_service_client.api.nodes import create_node, delete_node, get_node, get_node_config
from gateway_control_service_client.models import (
    DeployL4ChainWait,
    Failure,
    Hop,
    HopOuter,
    HopSecurity,
    NewL4Chain,
    NewL4ChainPayload,
    NewL4Upstream,
    NewNode,
    NewNodeLabels,
    SignIn,
    UpstreamTarget,
)


def data_of(response):
    """The data of a success; otherwise raises with the service's own sentence."""
    if response.parsed is None or isinstance(response.parsed, Failure):
        raise SystemExit(f"refused: {response.content.decode()}")
    return response.parsed.data


def main_job(url: str, username: str, password: str) -> dict:
    signed_in = data_of(sign_in.sync_detailed(client=Client(url), body=SignIn(username, password)))
    api = AuthenticatedClient(url, token=signed_in.token)

    labels = NewNodeLabels.from_dict({"region": "eu"})
    new_node = NewNode("edge-1", address="edge-1.example", labels=labels)
    node = data_of(create_node.sync_detailed(client=api, body=new_node, idempotency_key="main-job-in-python"))
    upstream = data_of(create_l4_upstream.sync_detailed(client=api, body=NewL4Upstream("app", "app.example:8443")))
    hop = Hop(node_id=node.id, listen_port=443, outer=HopOuter.TCP, security=HopSecurity.RAW)
    new_chain = NewL4Chain("front", NewL4ChainPayload.TCP, hops=[hop], target=UpstreamTarget(upstream.id))
    chain = data_of(create_l4_chain.sync_detailed(client=api, body=new_chain))

    planned = plan_l4_chain.sync_detailed(chain.id, client=api)
    deployed = data_of(
        deploy_l4_chain.sync_detailed(
            chain.id, client=api, wait=DeployL4ChainWait.APPLIED, timeout_ms=0, if_match=planned.headers["etag"]
        )
    )
    config = data_of(get_node_config.sync_detailed(node.id, client=api))
    audit = data_of(list_audit_entries.sync_detailed(client=api, resource_id=str(chain.id), page_size=10))

    data_of(delete_l4_chain.sync_detailed(chain.id, client=api, if_match="*"))
    data_of(delete_l4_upstream.sync_detailed(upstream.id, client=api))
    data_of(delete_node.sync_detailed(node.id, client=api))
    after = get_node.sync_detailed(node.id, client=api)
    return {
        "node": node.to_dict(),
        "upstream": upstream.to_dict(),
        "plan": data_of(planned).to_dict(),
        "deployed": deployed.to_dict(),
        "config": config.to_dict(),
        "actions": [entry.action for entry in audit.items],
        "gone": {"status": after.status_code, "failure": after.parsed.to_dict()},
    }


print(json.dumps(main_job(*sys.argv[1:])))
