/**
 * A network drawn: its members around a circle, with a line for each tunnel, from the dialling end to the listening
 * end.
 */
import type { ReactNode } from 'react';
import { formatCount } from '../shared/ui/format.js';
import { known } from '../shared/ui/states.js';
import type { L3Network, MemberNode } from './l3-networks.js';
import { text } from './l3-networks.text.js';
import classes from './network-drawing.module.css';

export interface DrawnMember {
  readonly node_id: string;
  readonly name: string;
  /** Undefined until it is known. */
  readonly status: MemberNode['node_status'] | undefined;
  readonly addresses: readonly string[];
}

interface NetworkDrawingProps {
  readonly members: readonly DrawnMember[];
  readonly tunnels: L3Network['tunnels'];
}

const size = { width: 760, least: 320, dot: 7, margin: 70, label: 14 };
/** With more members, names would overlap; pointing at a dot shows its name. */
const mostNamed = 40;

export function NetworkDrawing({ members, tunnels }: NetworkDrawingProps): ReactNode {
  const height = Math.min(size.width, Math.max(size.least, members.length * 12 + 200));
  const [middleX, middleY] = [size.width / 2, height / 2];
  const [radiusX, radiusY] = [middleX - size.margin * 2, middleY - size.margin / 1.5];
  const places = new Map(
    members.map(({ node_id: id }, index) => {
      const angle = members.length === 1 ? 0 : (index / members.length) * 2 * Math.PI - Math.PI;
      return [id, { x: middleX + radiusX * Math.cos(angle), y: middleY + radiusY * Math.sin(angle) }] as const;
    }),
  );
  return (
    <div className={classes.frame}>
      <svg
        className={classes.drawing}
        viewBox={`0 0 ${size.width} ${height}`}
        role="img"
        aria-label={text.drawn(formatCount(members.length), formatCount(tunnels.length))}
      >
        <defs>
          <marker id="l3-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 0L8 4L0 8z" className={classes.arrow} />
          </marker>
        </defs>
        {tunnels.map(({ connector_node_id: from, listener_node_id: to, context_id: context, listen_port: port }) => {
          const [start, end] = [places.get(from), places.get(to)];
          if (start === undefined || end === undefined) return null;
          const length = Math.hypot(end.x - start.x, end.y - start.y) || 1;
          const short = (size.dot + 4) / length;
          return (
            <line
              key={`${from} ${to} ${port} ${context}`}
              className={classes.tunnel}
              x1={start.x}
              y1={start.y}
              x2={end.x - (end.x - start.x) * short}
              y2={end.y - (end.y - start.y) * short}
              markerEnd="url(#l3-arrow)"
            />
          );
        })}
        {members.map(({ node_id: id, name, status, addresses }) => {
          const { x = 0, y = 0 } = places.get(id) ?? {};
          const onTheRight = x >= middleX;
          return (
            <g key={id}>
              <circle className={classes.member} data-status={status} cx={x} cy={y} r={size.dot}>
                <title>{[name, ...(status ? [known('node', status)[1]] : []), ...addresses].join(', ')}</title>
              </circle>
              {members.length <= mostNamed && (
                <text
                  x={x + (onTheRight ? size.label : -size.label)}
                  y={y}
                  textAnchor={onTheRight ? 'start' : 'end'}
                  className={classes.name}
                >
                  {name}
                  <tspan x={x + (onTheRight ? size.label : -size.label)} dy="1.2em" className={classes.address}>
                    {addresses[0]}
                  </tspan>
                </text>
              )}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
