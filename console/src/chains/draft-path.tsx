/** The path of a chain as it is built: it grows above the form. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { namedQuery } from '../shared/named.js';
import { formatAddress } from '../shared/ui/format.js';
import classes from './chain-path.module.css';
import type { HopValues, Values } from './chain-values.js';
import { text } from './chains.text.js';

/** This many hops fit beside one another above a form. */
const shortChain = 3;

export function DraftPath({ values: { hops, target, payload } }: { readonly values: Values }): ReactNode {
  const { data: upstream } = useQuery(namedQuery('l4_upstream', 'upstream_id' in target ? target.upstream_id : ''));
  const ends = 'upstream_id' in target ? upstream?.name : target.endpoint;
  return (
    <section className={`${classes.path} ${classes.draft}`} aria-label={text.draftPath}>
      <ol data-short={hops.length <= shortChain || undefined}>
        <li className={classes.stop} data-end>
          <span className={classes.name}>{text.clients}</span>
        </li>
        {hops.map((hop, index) => (
          <DraftHop key={index} hop={hop} />
        ))}
        <li className={classes.link} data-mood={ends ? 'busy' : 'idle'}>
          <div className={classes.transport}>{text.payloads[payload]}</div>
        </li>
        <li className={classes.stop} data-end>
          {ends ? (
            <span className={classes.name} title={ends}>
              {ends}
            </span>
          ) : (
            <span className={classes.quiet}>{text.targetToChoose}</span>
          )}
        </li>
      </ol>
    </section>
  );
}

function DraftHop({ hop }: { readonly hop: HopValues }): ReactNode {
  const { node_id: nodeId, listen_addr: address, listen_port: port, outer, security } = hop;
  const { data: node } = useQuery(namedQuery('node', nodeId));
  return (
    <>
      <li className={classes.link} data-mood={nodeId === '' ? 'idle' : 'busy'}>
        <div className={classes.transport}>{text.transport(outer, security)}</div>
      </li>
      <li className={classes.stop}>
        {node === undefined ? (
          <span className={classes.quiet}>{text.nodeToChoose}</span>
        ) : (
          <div className={classes.name} title={node.name}>
            {node.name}
          </div>
        )}
        {port !== '' && <div className={classes.address}>{formatAddress(address, Number(port))}</div>}
      </li>
    </>
  );
}
