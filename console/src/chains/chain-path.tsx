/**
 * A chain as the path that traffic takes, which is the deployed one: clients, each hop with its node and listener, the target;
 * between them what the link uses and what agents have measured of it.
 */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { formatAddress, formatBytes, formatMilliseconds, formatShare } from '../shared/ui/format.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { NodeStatus } from '../shared/ui/node-status.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { State } from '../shared/ui/state.js';
import classes from './chain-path.module.css';
import { ListenerState, NodeProgress } from './chain-states.js';
import {
  chainLinksQuery,
  deploymentsQuery,
  listenerQuery,
  targetHealthQuery,
  transportsQuery,
  type Chain,
  type Definition,
  type Hop,
  type Link,
} from './chains.js';
import { text } from './chains.text.js';

/** So many hops have room beside one another. */
const shortChain = 3;
/** A link that loses more makes its chain degraded. */
const tolerableLoss = 0.2;

/** The definition that nodes run; of a chain that was never deployed, the one that they would. Undefined until it is known. */
function usePath(chain: Chain): Definition | undefined {
  const { data } = useQuery({ ...deploymentsQuery(chain.id), enabled: chain.status === 'modified' });
  if (chain.status !== 'modified') return chain;
  return data?.items.find(({ chain_version: version }) => version === chain.deployed_version)?.definition;
}

export function ChainPath({ chain }: { readonly chain: Chain }): ReactNode {
  const path = usePath(chain);
  return path === undefined ? null : <Path chain={chain} path={path} />;
}

function Path({ chain, path }: { readonly chain: Chain; readonly path: Definition }): ReactNode {
  const { data: links } = useQuery(chainLinksQuery(chain.id));
  const measuredInto = (index: number): Link | undefined =>
    links?.items.find(
      ({ from_node_id: from, to_node_id: to }) =>
        from === path.hops[index - 1]?.node_id && to === path.hops[index]?.node_id,
    );
  return (
    <div className={classes.path}>
      {chain.status === 'modified' && <div className={classes.quiet}>{text.deployedPath}</div>}
      <ol data-short={path.hops.length <= shortChain || undefined}>
        <li className={classes.stop} data-end>
          <span className={classes.name}>{text.clients}</span>
        </li>
        {path.hops.map((hop, index) => (
          <HopStops
            key={hop.node_id}
            chain={chain}
            payload={path.payload}
            index={index}
            hop={hop}
            link={measuredInto(index)}
          />
        ))}
        <TargetStops path={path} />
      </ol>
    </div>
  );
}

interface HopStopsProps {
  readonly chain: Chain;
  readonly payload: Definition['payload'];
  readonly index: number;
  readonly hop: Hop;
  readonly link: Link | undefined;
}

function HopStops({ chain, payload, index, hop, link }: HopStopsProps): ReactNode {
  const status = chain.hop_status.find(
    (one) => one.node_id === hop.node_id && one.listen_addr === hop.listen_addr && one.listen_port === hop.listen_port,
  );
  const away = status?.status === 'offline' || (status?.state ?? 'running') !== 'running';
  const lossy = (link?.loss_ratio ?? 0) > tolerableLoss;
  return (
    <>
      <li className={classes.link} data-mood={away || lossy ? 'bad' : undefined}>
        <div>{text.transport(hop.outer, hop.security)}</div>
        {hop.server_names !== undefined && (
          <div className={classes.quiet}>
            {text.names} {hop.server_names.join(', ')}
          </div>
        )}
        {index > 0 && <Measured link={link} />}
      </li>
      <li className={classes.stop}>
        <div className={classes.name}>
          <ResourceLink type="node" id={hop.node_id} name={status?.node_name ?? null} />
        </div>
        {status !== undefined && (
          <>
            <div>
              <NodeStatus status={status.status} />
            </div>
            <Progress chain={chain} nodeId={hop.node_id} />
            <div>
              <ListenerState {...status} />
            </div>
          </>
        )}
        <div className={classes.quiet}>
          {text.listens} {formatAddress(hop.listen_addr, hop.listen_port)}
        </div>
        <Sessions hop={hop} payload={payload} />
      </li>
    </>
  );
}

/** How far the node is with the newest deployment. */
function Progress({ chain, nodeId }: { readonly chain: Chain; readonly nodeId: string }): ReactNode {
  const { data } = useQuery(deploymentsQuery(chain.id));
  const node = data?.items[0]?.nodes.find(({ node_id: id }) => id === nodeId);
  if (node === undefined || node.state === 'offline') return null;
  return (
    <div>
      <NodeProgress state={node.state} />
    </div>
  );
}

function Measured({ link }: { readonly link: Link | undefined }): ReactNode {
  if (link === undefined || link.measured_at === null) return <div className={classes.quiet}>{text.notMeasured}</div>;
  return (
    <>
      {link.rtt_ms !== null && (
        <div>
          {formatMilliseconds(link.rtt_ms)} {text.roundTrip}
          {link.loss_ratio !== null && link.loss_ratio > 0 && `, ${formatShare(link.loss_ratio)} ${text.loss}`}
        </div>
      )}
      {link.bytes_in !== null && link.bytes_out !== null && <Traffic forth={link.bytes_out} back={link.bytes_in} />}
    </>
  );
}

/** Bytes towards the target, and those that came back. */
function Traffic({ forth, back }: { readonly forth: number; readonly back: number }): ReactNode {
  return (
    <div className={classes.quiet}>
      <span className={classes.figure}>{text.forth(formatBytes(forth))}</span>{' '}
      <span className={classes.figure}>{text.back(formatBytes(back))}</span>
    </div>
  );
}

/** Of the listener, which others may share. */
function Sessions({ hop, payload }: { readonly hop: Hop; readonly payload: Definition['payload'] }): ReactNode {
  const { data: transports = [] } = useQuery(transportsQuery);
  const listens = transports.find(
    (one) => one.payload === payload && one.outer === hop.outer && one.security === hop.security,
  )?.listens;
  const { data: listener } = useQuery(listenerQuery(hop, listens));
  if (listener?.activeSessions === undefined) return null;
  const { activeSessions, bytesIn, bytesOut, routes } = listener;
  return (
    <div className={classes.quiet} title={routes.length > 1 ? text.shared : undefined}>
      <div>{text.sessions(activeSessions)}</div>
      {bytesIn !== undefined && bytesOut !== undefined && <Traffic forth={bytesIn} back={bytesOut} />}
    </div>
  );
}

function TargetStops({ path: { target, hops, payload } }: { readonly path: Definition }): ReactNode {
  const upstreamId = 'upstream_id' in target ? target.upstream_id : undefined;
  const { data: health } = useQuery(targetHealthQuery(upstreamId));
  const last = hops.at(-1)?.node_id;
  const seen = health?.items.find(({ node_id: id }) => id === last);
  const secured = 'upstream_id' in target ? '' : target.tls ? 'TLS' : target.reality ? 'REALITY' : '';
  return (
    <>
      <li className={classes.link} data-mood={seen?.healthy === false ? 'bad' : undefined}>
        <div>{secured || text.payloads[payload]}</div>
        {seen !== undefined && seen.requests !== null && (
          <div className={classes.quiet}>{text.requests(seen.requests)}</div>
        )}
      </li>
      <li className={classes.stop} data-end>
        <div className={classes.name}>
          {'upstream_id' in target ? <NamedLink type="l4_upstream" id={target.upstream_id} /> : target.endpoint}
        </div>
        <div className={classes.quiet}>{text.target}</div>
        {seen !== undefined && seen.healthy !== null && (
          <State mood={seen.healthy ? 'good' : 'bad'}>{seen.healthy ? text.healthy : text.unhealthy}</State>
        )}
      </li>
    </>
  );
}
