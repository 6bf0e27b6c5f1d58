/** Why a chain does not work: the first reason as one sentence, and what the agents say of it in their words. */
import { useQuery } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { FieldLink } from '../shared/ui/resource-link.js';
import { NamedLink } from '../shared/ui/named-link.js';
import { Sign } from '../shared/ui/state.js';
import { known } from '../shared/ui/states.js';
import { deploymentsQuery, type Chain } from './chains.js';
import { text } from './chains.text.js';
import classes from './why.module.css';

export function Why({ chain }: { readonly chain: Chain }): ReactNode {
  const { health, id } = chain;
  const { data } = useQuery(deploymentsQuery(id));
  const [first, ...others] = health.reasons;
  if (health.state === 'ok' || first === undefined) return null;
  const said = (data?.items[0]?.nodes ?? []).flatMap((node) =>
    node.errors.filter(({ resource_id: of }) => of === id).map((error) => ({ node: node.node_id, ...error })),
  );
  const [mood] = known('health', health.state);
  return (
    <section className={classes.why} data-mood={mood}>
      <Sign mood={mood} size={20} />
      <div>
        <div className={classes.sentence}>
          {text.wrong[health.state]}: {first}
        </div>
        {/* The words of an agent are nearer to the cause. */}
        {said.length === 0 && others.map((reason) => <div key={reason}>{reason}</div>)}
        {said.map(({ node, path, message }) => (
          <div key={`${node} ${path} ${message}`}>
            <NamedLink type="node" id={node} /> {text.says} {message} <FieldLink type="l4_chain" id={id} path={path} />
          </div>
        ))}
      </div>
    </section>
  );
}
