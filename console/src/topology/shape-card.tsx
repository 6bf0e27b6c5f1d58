/** A node, or a group of nodes, as the topology draws it: its name, which leads to it, and its state by colour and sign. */
import { Handle, Position, type Node as FlowNode, type NodeProps } from '@xyflow/react';
import type { ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { ResourceLink } from '../shared/ui/resource-link.js';
import { State } from '../shared/ui/state.js';
import type { Shape } from './shapes.js';
import { text } from './topology.text.js';
import classes from './topology.module.css';

export type ShapeNode = FlowNode<
  { readonly shape: Shape; readonly dimmed: boolean; readonly groupBy: string | undefined },
  'shape'
>;

export function ShapeCard({ data: { shape, dimmed, groupBy } }: NodeProps<ShapeNode>): ReactNode {
  return (
    <div className={classes.card} data-mood={shape.mood} data-dimmed={dimmed || undefined}>
      <Handle type="target" position={Position.Left} isConnectable={false} className={classes.handle} />
      <div className={classes.name}>
        <Name shape={shape} groupBy={groupBy} />
      </div>
      <State mood={shape.mood}>{groupBy === undefined ? stateOf(shape) : groupState(shape)}</State>
      <Handle type="source" position={Position.Right} isConnectable={false} className={classes.handle} />
    </div>
  );
}

function Name({ shape: { id, name }, groupBy }: Pick<ShapeNode['data'], 'shape' | 'groupBy'>): ReactNode {
  if (groupBy === undefined) return <ResourceLink type="node" id={id} name={name} />;
  if (name === null) return text.withoutLabel(groupBy);
  return (
    <TextLink to="/nodes" search={{ label: [`${groupBy}:${name}`] }}>
      {name}
    </TextLink>
  );
}

function stateOf({ nodes: [node] }: Shape): string {
  if (node === undefined) return '';
  return node.apply.state === 'rejected' ? text.rejected : text.statuses[node.status];
}

function groupState({ nodes, troubled }: Shape): string {
  const state = troubled === 0 ? text.allWell : text.troubled(formatCount(troubled));
  return `${text.nodes(formatCount(nodes.length))}, ${state}`;
}
