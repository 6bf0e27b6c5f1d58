/** All nodes and the links between them, coloured by state; beyond what can be drawn, groups of them by a label. */
import { Group, Select, Text, TextInput } from '@mantine/core';
import { Controls, MarkerType, ReactFlow, type Edge, type ReactFlowInstance } from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { useMay } from '../shared/session.js';
import { Empty } from '../shared/ui/empty.js';
import { formatCount, formatMilliseconds, formatShare } from '../shared/ui/format.js';
import { TextLink } from '../shared/ui/links.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { useTyped } from '../shared/ui/typed.js';
import { placed } from './layout.js';
import { ShapeCard, type ShapeNode } from './shape-card.js';
import { isMeant, linesOf, shapesOf, type Line, type Shape } from './shapes.js';
import { fleetQuery, type Link, type Node } from './topology.js';
import { text } from './topology.text.js';
import classes from './topology.module.css';

/** More than these are drawn in groups. */
const mostDrawn = 500;
/** As the health of chains judges it. */
const tolerableLoss = 0.2;
const nodeTypes = { shape: ShapeCard };

export function TopologyPage(): ReactNode {
  const { data, error, refetch } = useQuery(fleetQuery);
  return (
    <Page title={text.title}>
      {data === undefined && error !== null && <Problem error={error} retry={() => void refetch()} />}
      {data !== undefined && <Fleet nodes={data.nodes} links={data.links} />}
    </Page>
  );
}

interface FleetProps {
  readonly nodes: readonly Node[];
  readonly links: readonly Link[];
}

function Fleet({ nodes, links }: FleetProps): ReactNode {
  const { q, group_by: groupBy } = useSearch({ from: '/topology' });
  const navigate = useNavigate({ from: '/topology' });
  const keys = useMemo(() => labelKeys(nodes), [nodes]);
  const tooMany = nodes.length > mostDrawn;
  const by = groupBy ?? (tooMany ? keys[0] : undefined);
  const find = useTyped(q ?? '', (typed) => void navigate({ search: { q: typed, group_by: groupBy }, replace: true }));
  const shapes = useMemo(() => shapesOf(nodes, by), [nodes, by]);
  const lines = useMemo(() => linesOf(shapes, links), [shapes, links]);
  const meant = q === undefined ? undefined : shapes.filter((shape) => isMeant(shape, q.toLowerCase()));
  return (
    <>
      <Group gap="xs">
        <TextInput {...find} aria-label={text.find} placeholder={text.find} type="search" w={220} />
        <Select
          aria-label={text.groupBy}
          placeholder={text.ungrouped}
          data={keys}
          value={by ?? null}
          onChange={(key) => void navigate({ search: { q, group_by: key ?? undefined }, replace: true })}
          clearable={!tooMany}
          w={200}
        />
        {meant !== undefined && (
          <Text size="sm" c="dimmed" aria-live="polite">
            {text.found(formatCount(meant.length))}
          </Text>
        )}
      </Group>
      {tooMany && <Text size="sm">{keys.length === 0 ? text.noLabels : text.mustGroup(formatCount(mostDrawn))}</Text>}
      {nodes.length === 0 && <NoNodes />}
      {nodes.length > 0 && !(tooMany && by === undefined) && (
        <Drawing key={by ?? ''} shapes={shapes} lines={lines} meant={meant} groupBy={by} />
      )}
    </>
  );
}

function NoNodes(): ReactNode {
  const mayAdd = useMay('operator');
  return (
    <Empty title={text.emptyTitle}>
      {text.empty} {mayAdd && <TextLink to="/nodes">{text.addNode}</TextLink>}
    </Empty>
  );
}

/** The keys of labels, those of most nodes first. */
function labelKeys(nodes: readonly Node[]): string[] {
  const counts = new Map<string, number>();
  for (const { labels } of nodes) {
    for (const key of Object.keys(labels)) counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([key]) => key);
}

interface DrawingProps {
  readonly shapes: readonly Shape[];
  readonly lines: readonly Line[];
  /** What a search found; undefined without one. */
  readonly meant: readonly Shape[] | undefined;
  readonly groupBy: string | undefined;
}

function Drawing({ shapes, lines, meant, groupBy }: DrawingProps): ReactNode {
  const places = useMemo(() => placed(shapes, lines), [shapes, lines]);
  const found = new Set(meant?.map(({ id }) => id));
  const nodes = places.map(({ shape, x, y }): ShapeNode => ({
    id: shape.id,
    type: 'shape',
    position: { x, y },
    data: { shape, groupBy, dimmed: meant !== undefined && !found.has(shape.id) },
    // Its link takes the focus.
    focusable: false,
  }));
  const edges = useMemo(() => lines.map(edgeOf), [lines]);
  const [flow, setFlow] = useState<ReactFlowInstance<ShapeNode>>();
  const shown = JSON.stringify((meant ?? []).map(({ id }) => id));
  useEffect(() => {
    // All of it again once the search is empty.
    const ids = JSON.parse(shown) as readonly string[];
    const searched = ids.length === 0 ? {} : { nodes: ids.map((id) => ({ id })) };
    void flow?.fitView({ maxZoom: 1, ...searched });
  }, [flow, shown]);
  return (
    <>
      <section className={classes.canvas} aria-label={text.caption}>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={nodeTypes}
          nodesDraggable={false}
          nodesConnectable={false}
          edgesFocusable={false}
          onlyRenderVisibleElements
          minZoom={0.05}
          onInit={setFlow}
        >
          <Controls showInteractive={false} />
        </ReactFlow>
      </section>
      <Text size="sm" c="dimmed">
        {text.legend}
      </Text>
    </>
  );
}

function edgeOf({ from, to, count, rttMs, loss }: Line): Edge {
  const lossy = loss !== null && loss > tolerableLoss;
  const stroke = lossy ? 'light-dark(#c92a2a, #ff8787)' : 'var(--mantine-color-dimmed)';
  const words = [
    ...(count > 1 ? [text.links(count)] : []),
    ...(rttMs === null ? [] : [formatMilliseconds(rttMs)]),
    ...(lossy ? [text.loss(formatShare(loss))] : []),
  ];
  return {
    id: `${from} ${to}`,
    source: from,
    target: to,
    label: words.join(', '),
    style: { stroke, ...(loss === null && { strokeDasharray: '5 4' }) },
    markerEnd: { type: MarkerType.ArrowClosed },
  };
}
