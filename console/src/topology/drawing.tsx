/**
 * The picture itself: cards with arrows in the direction of traffic. A search moves it to what is found. Many cards are
 * drawn small, without zoom.
 */
import { Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { Controls, MarkerType, Position, ReactFlow, type Edge, type ReactFlowInstance } from '@xyflow/react';
import '@xyflow/react/dist/style.css';
import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { formatMilliseconds } from '../shared/ui/format.js';
import { mostRoomy, placed, roomy, small } from './layout.js';
import { ShapeCard, type ShapeNode } from './shape-card.js';
import type { Line, Picture, Shape } from './shapes.js';
import classes from './topology.module.css';
import type { TopologySearch } from './topology-search.js';
import { text } from './topology.text.js';

const nodeTypes = { shape: ShapeCard };
/** The least height of the picture, in pixels. */
export const leastHeight = 420;
const margin = 12;
/** The smallest zoom of roomy cards. */
const legible = 0.7;
const fitted = { maxZoom: 1, padding: 0.04 };

/** As `topology.module.css` has it. */
const [smallWidth, smallHeight] = [116, 22];
const handle = { y: smallHeight / 2, width: 1, height: 1 };
const smallNode = {
  width: smallWidth,
  height: smallHeight,
  handles: [
    { ...handle, type: 'target', position: Position.Left, x: 0 },
    { ...handle, type: 'source', position: Position.Right, x: smallWidth },
  ],
} satisfies Partial<ShapeNode>;

interface DrawingProps {
  readonly picture: Picture;
  readonly groupBy: string | undefined;
  readonly search: TopologySearch;
  /** What a search found; undefined without one. */
  readonly meant: readonly Shape[] | undefined;
}

export function Drawing(props: DrawingProps): ReactNode {
  const { ref, width } = useElementSize();
  const isSmall = props.picture.shapes.length > mostRoomy;
  return (
    <div ref={ref} className={classes.drawing}>
      {width > 0 && <Canvas {...props} isSmall={isSmall} width={width} />}
      <Text size="sm" c="dimmed">
        {text.legend}
      </Text>
    </div>
  );
}

interface CanvasProps extends DrawingProps {
  readonly isSmall: boolean;
  readonly width: number;
}

function Canvas({ picture: { shapes, lines }, groupBy, search, meant, isSmall, width }: CanvasProps): ReactNode {
  const cell = isSmall ? small : roomy;
  const zoom = isSmall ? 1 : legible;
  const columns = Math.max(1, Math.floor((width - 2 * margin) / (cell.column * zoom)));
  const places = useMemo(() => placed(shapes, lines, cell, columns), [shapes, lines, cell, columns]);
  const edges = useMemo(() => lines.map((line) => edgeOf(line, isSmall)), [lines, isSmall]);
  const nodes = useMemo(() => {
    const found = new Set(meant?.map(({ id }) => id));
    return places.map(({ shape, x, y }): ShapeNode => ({
      id: shape.id,
      type: 'shape',
      position: { x, y },
      data: { shape, groupBy, search, isSmall, dimmed: meant !== undefined && !found.has(shape.id) },
      // Its link takes the focus.
      focusable: false,
      // What has a size is drawn at once, without being measured first.
      ...(isSmall && smallNode),
    }));
  }, [places, groupBy, search, isSmall, meant]);
  const [flow, setFlow] = useState<ReactFlowInstance<ShapeNode>>();
  const shown = JSON.stringify((meant ?? []).map(({ id }) => id));
  const fits = `${shapes.length} ${columns} ${width}`;
  useEffect(() => {
    const ids = JSON.parse(shown) as readonly string[];
    if (!isSmall) {
      // Shows the whole picture again once the search is empty.
      void flow?.fitView({ ...fitted, ...(ids.length > 0 && { nodes: ids.map((id) => ({ id })) }) });
      return;
    }
    void flow?.setViewport({ x: margin, y: margin, zoom: 1 });
    const [first] = ids;
    if (first !== undefined)
      document.querySelector(`[data-id="${CSS.escape(first)}"]`)?.scrollIntoView({ block: 'center' });
  }, [flow, shown, isSmall, fits]);
  const bottom = Math.max(0, ...places.map(({ y }) => y)) + cell.row;
  return (
    <section
      className={classes.canvas}
      aria-label={text.caption}
      style={{ height: Math.max(leastHeight, bottom * zoom + 2 * margin) }}
    >
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        // A tall picture scrolls with its page.
        zoomOnScroll={!isSmall}
        preventScrolling={!isSmall}
        minZoom={0.05}
        // Fits before the picture is first seen, so that nothing jumps.
        fitView={!isSmall}
        fitViewOptions={fitted}
        onInit={setFlow}
      >
        <Controls showInteractive={false} />
      </ReactFlow>
    </section>
  );
}

const strokes: Readonly<Record<Line['state'], string>> = {
  ok: 'var(--mantine-color-dimmed)',
  unknown: 'var(--mantine-color-dimmed)',
  degraded: 'var(--mood-warning)',
  down: 'var(--mood-bad)',
};

function edgeOf({ from, to, chains, state, rtt_ms: roundTrip }: Line, isSmall: boolean): Edge {
  const words = [text.chains(chains), ...(roundTrip === null ? [] : [formatMilliseconds(roundTrip)])];
  return {
    id: `${from} ${to}`,
    source: from,
    target: to,
    ...(!isSmall && { label: words.join(', ') }),
    style: { stroke: strokes[state], ...(state === 'unknown' && { strokeDasharray: '5 4' }) },
    markerEnd: { type: MarkerType.ArrowClosed, color: strokes[state] },
  };
}
