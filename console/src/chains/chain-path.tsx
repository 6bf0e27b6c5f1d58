/**
 * A chain as its deployed path, the one that traffic takes: clients, each hop with its node and listener, the target;
 * between them, the transport of each link and its measurements; beside each, what the next deploy changes.
 */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { fieldWords } from '../shared/audit/field-words.js';
import { shownValue } from '../shared/ui/changes.js';
import { formatAddress, formatBytes, formatMilliseconds, formatShare } from '../shared/ui/format.js';
import { ListenerState } from '../shared/ui/listener-state.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { StateOf } from '../shared/ui/state-of.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { State } from '../shared/ui/state.js';
import { text as shared } from '../shared/ui/ui.text.js';
import classes from './chain-path.module.css';
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
import { arrowOf, shownOf } from './hop-state.js';
import { changesSomething, pathChanges, type ChangedHop } from './path-changes.js';

/** This many hops fit beside one another. */
const shortChain = 3;

/** The definition that nodes run, or would run if the chain was never deployed. Undefined until it is known. */
export function useDeployedPath(chain: Chain): Definition | undefined {
  const { data } = useQuery({ ...deploymentsQuery(chain.id), enabled: chain.status === 'modified' });
  if (chain.status !== 'modified') return chain;
  return data?.items.find(({ chain_version: version }) => version === chain.deployed_version)?.definition;
}

export function ChainPath({ chain }: { readonly chain: Chain }): ReactNode {
  const path = useDeployedPath(chain);
  return path === undefined ? null : <Path chain={chain} path={path} />;
}

function Path({ chain, path }: { readonly chain: Chain; readonly path: Definition }): ReactNode {
  const { data: links } = useQuery(chainLinksQuery(chain.id));
  const measuredInto = (index: number): Link | undefined =>
    links?.items.find(
      ({ from_node_id: from, to_node_id: to }) =>
        from === path.hops[index - 1]?.node_id && to === path.hops[index]?.node_id,
    );
  // Only a modified chain differs from what is deployed.
  const changes = pathChanges(path, chain.status === 'modified' ? chain : path);
  return (
    <div className={classes.path}>
      {chain.status === 'modified' && <div className={classes.quiet}>{text.deployedPath}</div>}
      <ol data-short={(changes.hops.length <= shortChain && !changesSomething(changes)) || undefined}>
        <li className={classes.stop} data-end>
          <span className={classes.name}>{text.clients}</span>
        </li>
        {changes.hops.map(({ hop, ...change }, index) => (
          <HopStops
            key={hop.node_id}
            chain={chain}
            payload={path.payload}
            index={index}
            hop={hop}
            change={change}
            link={measuredInto(path.hops.indexOf(hop))}
          />
        ))}
        <TargetStops chain={chain} path={path} changes={[...changes.payload, ...changes.target]} />
      </ol>
    </div>
  );
}

interface HopStopsProps {
  readonly chain: Chain;
  readonly payload: Definition['payload'];
  readonly index: number;
  readonly hop: Hop;
  readonly change: Omit<ChangedHop, 'hop'>;
  readonly link: Link | undefined;
}

function HopStops({ chain, payload, index, hop, change, link }: HopStopsProps): ReactNode {
  const { data: deployments } = useQuery(deploymentsQuery(chain.id));
  const listener = useListener(hop, payload);
  const status = chain.hop_status.find(
    (one) => one.node_id === hop.node_id && one.listen_addr === hop.listen_addr && one.listen_port === hop.listen_port,
  );
  // How far the node is with the newest deployment.
  const progress = deployments?.items[0]?.nodes.find(({ node_id: id }) => id === hop.node_id)?.state;
  const shown = status === undefined ? [] : shownOf(status, progress);
  return (
    <>
      <li className={classes.link} data-mood={arrowOf(status, progress, link)}>
        <div className={classes.transport}>{text.transport(hop.outer, hop.security)}</div>
        {hop.server_names !== undefined && (
          <div className={classes.quiet}>
            {text.names} {hop.server_names.join(', ')}
          </div>
        )}
        {index > 0 && <Measured link={link} />}
        {listener?.activeSessions !== undefined && (
          <div title={listener.routes.length > 1 ? text.shared : undefined}>
            {text.sessions(listener.activeSessions)}
          </div>
        )}
        {listener?.bytesIn !== undefined && listener.bytesOut !== undefined && (
          <Traffic forth={listener.bytesIn} back={listener.bytesOut} />
        )}
      </li>
      <li className={classes.stop} data-change={change.kind}>
        <div className={classes.name}>
          <ResourceLink type="node" id={hop.node_id} name={status?.node_name ?? null} />
        </div>
        {status !== undefined && change.kind !== 'added' && (
          <>
            {shown.includes('node') && <StateOf kind="node" is={status.status} />}
            {shown.includes('progress') && progress !== undefined && <StateOf kind="deployment" is={progress} />}
            {shown.includes('listener') && <ListenerState {...status} at={status.reported_at} />}
          </>
        )}
        <div className={classes.address}>{formatAddress(hop.listen_addr, hop.listen_port)}</div>
        <NextDeploy {...change} />
      </li>
    </>
  );
}

/** The effect of the next deploy on a hop or on the target. */
function NextDeploy({ kind, changes }: Omit<ChangedHop, 'hop'>): ReactNode {
  switch (kind) {
    case 'kept':
      return null;
    case 'added':
    case 'gone':
      return <State mood="busy">{text.nextDeploy[kind]}</State>;
    case 'changed':
      return (
        <ul className={classes.changes} aria-label={text.nextDeploy.changed}>
          {changes.map(({ path, before, after }) => (
            <li key={path}>
              {fieldWords(path)}: {shownValue(before, path)} → {shownValue(after, path)}
            </li>
          ))}
        </ul>
      );
    default:
      return kind satisfies never;
  }
}

function Measured({ link }: { readonly link: Link | undefined }): ReactNode {
  if (link === undefined || link.measured_at === null) return <div className={classes.quiet}>{text.notMeasured}</div>;
  const { rtt_ms: roundTrip, loss_ratio: loss } = link;
  return (
    roundTrip !== null && (
      <div title={text.roundTrip}>
        {formatMilliseconds(roundTrip)}
        {loss !== null && loss > 0 && `, ${formatShare(loss)} ${text.loss}`}
      </div>
    )
  );
}

/** Bytes sent towards the target, and bytes that came back. */
function Traffic({ forth, back }: { readonly forth: number; readonly back: number }): ReactNode {
  return (
    <div className={classes.quiet}>
      <span className={classes.figure} title={text.forth}>
        → {formatBytes(forth)}
      </span>{' '}
      <span className={classes.figure} title={text.back}>
        ← {formatBytes(back)}
      </span>
    </div>
  );
}

/** The listener of a hop, as its agent reports it; other hops may share it. */
function useListener(hop: Hop, payload: Definition['payload']) {
  const { data: transports } = useQuery(transportsQuery);
  const listens = transports?.items.find(
    (one) => one.payload === payload && one.outer === hop.outer && one.security === hop.security,
  )?.listens;
  return useQuery(listenerQuery(hop, listens)).data?.nodes[0]?.listeners[0];
}

interface TargetStopsProps {
  readonly chain: Chain;
  readonly path: Definition;
  readonly changes: ChangedHop['changes'];
}

function TargetStops({ chain, path: { target, hops, payload }, changes }: TargetStopsProps): ReactNode {
  const upstreamId = 'upstream_id' in target ? target.upstream_id : undefined;
  const { data: health } = useQuery(targetHealthQuery(upstreamId));
  const last = hops.at(-1)?.node_id;
  const seen = health?.items.find(({ node_id: id }) => id === last);
  const isAway = chain.hop_status.some(({ node_id: id, status }) => id === last && status !== 'online');
  const mood = ({ true: 'good', false: 'bad', null: 'idle' } as const)[`${isAway ? null : (seen?.healthy ?? null)}`];
  const word = seen?.healthy ? text.healthy : text.unhealthy;
  const secured = 'upstream_id' in target ? '' : target.tls ? 'TLS' : target.reality ? 'REALITY' : '';
  return (
    <>
      <li className={classes.link} data-mood={mood}>
        <div className={classes.transport}>{secured || text.payloads[payload]}</div>
        {seen !== undefined && seen.requests !== null && (
          <div className={classes.quiet}>{text.requests(seen.requests)}</div>
        )}
      </li>
      <li className={classes.stop} data-end data-change={changes.length > 0 ? 'changed' : undefined}>
        <div className={classes.name}>
          {'upstream_id' in target ? <NamedLink type="l4_upstream" id={target.upstream_id} /> : target.endpoint}
        </div>
        <div className={classes.quiet}>{text.target}</div>
        {seen !== undefined && seen.healthy !== null && (
          <State mood={mood}>{isAway ? shared.listener.lastKnown(word) : word}</State>
        )}
        {changes.length > 0 && <NextDeploy kind="changed" changes={changes} />}
      </li>
    </>
  );
}
