/** A node, or a group of nodes, as the topology draws it: its name, which leads to it, and its state by colour and sign. */
import { Handle, Position, type Node as FlowNode, type NodeProps } from '@xyflow/react';
import type { ReactNode } from 'react';
import { TextLink } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { Sign, State } from '../shared/ui/state.js';
import type { Shape } from './shapes.js';
import classes from './topology.module.css';
import type { TopologySearch } from './topology-search.js';
import { text } from './topology.text.js';

/** What a card holds. A type, because the library accepts no interface there. */
type NameProps = {
  readonly shape: Shape;
  readonly groupBy: string | undefined;
  readonly search: TopologySearch;
};

export type ShapeNode = FlowNode<NameProps & { readonly dimmed: boolean; readonly isSmall: boolean }, 'shape'>;

export function ShapeCard({ data: { shape, dimmed, isSmall, ...rest } }: NodeProps<ShapeNode>): ReactNode {
  const { mood, state, neighbour } = shape;
  return (
    <div
      className={classes.card}
      data-mood={mood}
      data-small={isSmall || undefined}
      data-neighbour={neighbour || undefined}
      data-dimmed={dimmed || undefined}
      title={`${shape.name ?? ''}: ${state}`}
    >
      <Handle type="target" position={Position.Left} isConnectable={false} className={classes.handle} />
      {isSmall && <Sign mood={mood} size={11} />}
      <div className={classes.name}>
        <Name shape={shape} {...rest} />
      </div>
      {!isSmall && (
        <State mood={mood}>
          <span className={classes.words}>
            {state}
            {neighbour && `, ${text.neighbour}`}
          </span>
        </State>
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} className={classes.handle} />
    </div>
  );
}

/** A group opens, a node has a page. */
export function Name({ shape: { id, kind, name }, groupBy, search }: NameProps): ReactNode {
  if (kind === 'node') return <ResourceLink type="node" id={id} name={name} />;
  const opened = id === '' ? { unlabelled: 'true' as const } : { group: id };
  return (
    <TextLink to="/topology" search={{ ...search, group_by: groupBy, ...opened, page: undefined }}>
      {name ?? text.withoutLabel(groupBy ?? '')}
    </TextLink>
  );
}
