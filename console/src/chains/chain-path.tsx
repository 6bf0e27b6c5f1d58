/**
 * A chain as the path that traffic takes: clients, each hop with its node and listener, the target; between them what the
 * link uses and what agents have measured of it.
 */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { formatBytes, formatMilliseconds, formatShare } from '../shared/ui/format.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { State } from '../shared/ui/state.js';
import classes from './chain-path.module.css';
import { HopNodeState, ListenerState, NodeProgress } from './chain-states.js';
import { chainLinksQuery, deploymentsQuery, listenerQuery, targetHealthQuery, transportsQuery } from './chains.js';
import type { Chain, Hop, Link } from './chains.js';
import { text } from './chains.text.js';

/** So many hops have room beside one another. */
const shortChain = 3;

export function ChainPath({ chain }: { readonly chain: Chain }): ReactNode {
  const { data: links } = useQuery(chainLinksQuery(chain.id));
  const measuredInto = (index: number): Link | undefined =>
    links?.items.find(
      ({ from_node_id: from, to_node_id: to }) =>
        from === chain.hops[index - 1]?.node_id && to === chain.hops[index]?.node_id,
    );
  return (
    <div className={classes.path}>
      <ol data-short={chain.hops.length <= shortChain || undefined}>
        <li className={classes.stop} data-end>
          <span className={classes.name}>{text.clients}</span>
        </li>
        {chain.hops.map((hop, index) => (
          <HopStops key={hop.node_id} chain={chain} index={index} hop={hop} link={measuredInto(index)} />
        ))}
        <TargetStops chain={chain} />
      </ol>
    </div>
  );
}

interface HopStopsProps {
  readonly chain: Chain;
  readonly index: number;
  readonly hop: Hop;
  readonly link: Link | undefined;
}

function HopStops({ chain, index, hop, link }: HopStopsProps): ReactNode {
  const status = chain.hop_status[index];
  const away = status?.status === 'offline' || (status?.state ?? 'running') !== 'running';
  return (
    <>
      <li className={classes.link} data-mood={away ? 'bad' : undefined}>
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
              <HopNodeState status={status.status} />
            </div>
            <Progress chain={chain} nodeId={hop.node_id} />
            <div>
              <ListenerState {...status} />
            </div>
          </>
        )}
        <div className={classes.quiet}>
          {text.listens} {hop.listen_addr}:{hop.listen_port}
        </div>
        <Sessions hop={hop} payload={chain.payload} />
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
function Sessions({ hop, payload }: { readonly hop: Hop; readonly payload: Chain['payload'] }): ReactNode {
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

function TargetStops({ chain: { target, hops, payload } }: { readonly chain: Chain }): ReactNode {
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
