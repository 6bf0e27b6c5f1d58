/**
 * Figures over time, drawn by uPlot: the values under the cursor, or the newest ones, stand at the right of its title; gaps where nothing
 * was reported; a mark where something was deployed.
 */
import 'uplot/dist/uPlot.min.css';
import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import uPlot from 'uplot';
import { formatTime, none } from './format.js';
import { dotsOf, lastOf, type Mark } from './curve.js';
import { historyText as text } from './history.text.js';
import classes from './plot.module.css';

export interface Line {
  readonly label: string;
  /** One for each time; null where nothing is known. */
  readonly values: readonly (number | null)[];
  /** `bad` is for failures. */
  readonly tone: 'main' | 'second' | 'bad';
  /** For a line that counts something else than the others: drawn on a scale of its own, in the lower third. */
  readonly own?: (value: number) => string;
}

export interface PlotProps {
  /** What it shows; screen readers read it too. */
  readonly title: string;
  /** In seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** The top of the scale; by the values when absent. */
  readonly most?: number;
  readonly marks?: readonly Mark[];
  /** In pixels. */
  readonly height?: number;
}

const usualHeight = 140;
const axisWidth = 68;
const pointSize = 4;
/** How many times as high as its line a scale of its own is. */
const ownShare = 3;
const colours = {
  light: { main: '#3b5bdb', second: '#868e96', bad: '#c92a2a', axis: '#5c636a', grid: '#eef0f2', mark: '#1864ab' },
  dark: { main: '#91a7ff', second: '#868e96', bad: '#ff8787', axis: '#a6adb4', grid: '#33363a', mark: '#74c0fc' },
} as const;
const dayMs = 86_400_000;

export function Plot(props: PlotProps): ReactNode {
  const { title, times, lines, format, most, marks = [], height = usualHeight } = props;
  const place = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot>(undefined);
  const shownMarks = useRef(marks);
  const [pointed, point] = useState<number>();
  const scheme = useComputedColorScheme('light', { getInitialValueInEffect: false });
  const shape = `${scheme} ${title} ${most} ${height} ${lines.map(({ label, tone }) => `${label}/${tone}`).join(' ')}`;
  const data: uPlot.AlignedData = [[...times], ...lines.map(({ values }) => [...values])];

  useEffect(() => {
    const parent = place.current;
    if (parent === null) return undefined;
    const options = optionsOf(props, scheme, () => shownMarks.current, point);
    const plot = new uPlot({ ...options, width: parent.clientWidth, height }, data, parent);
    drawn.current = plot;
    const resized = new ResizeObserver(() => {
      if (parent.clientWidth !== plot.width) plot.setSize({ width: parent.clientWidth, height });
    });
    resized.observe(parent);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
    // New values are set below, without drawing everything anew.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [shape]);
  // Drawn once for each answer, not for each move of the cursor.
  useEffect(() => {
    shownMarks.current = marks;
    drawn.current?.setData(data);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [times, lines, marks]);

  const at = pointed === undefined ? undefined : times[pointed];
  return (
    <figure className={classes.plot}>
      <figcaption className={classes.caption}>
        <span className={classes.title}>{title}</span>
        <span className={classes.time}>{at === undefined ? '' : formatTime(at * 1_000, 'short')}</span>
        {lines.map(({ label, tone, values, own = format }) => {
          const value = pointed === undefined ? lastOf(values) : values[pointed];
          return (
            <span key={label} className={classes.value} data-tone={tone}>
              {lines.length > 1 && `${label} `}
              <b>{value === null || value === undefined ? none : own(value)}</b>
            </span>
          );
        })}
      </figcaption>
      <div className={classes.place}>
        <div ref={place} role="img" aria-label={title} />
        {lines.every(({ values }) => values.every((value) => value === null)) && (
          <div className={classes.empty}>{text.empty}</div>
        )}
      </div>
    </figure>
  );
}

const dots = ({ data }: uPlot, series: number): number[] => dotsOf(data[series] ?? []);

function optionsOf(
  { lines, most, format }: PlotProps,
  scheme: 'light' | 'dark',
  marks: () => readonly Mark[],
  point: (at: number | undefined) => void,
): Omit<uPlot.Options, 'width' | 'height'> {
  const colour = colours[scheme];
  const axis = { stroke: colour.axis, font: '11px system-ui, sans-serif', ticks: { show: false } } as const;
  return {
    legend: { show: false },
    // Plots of one page move their cursors together.
    cursor: { sync: { key: 'history' }, drag: { x: false, y: false }, points: { size: 6 }, y: false },
    scales: {
      y: { range: (_plot, _low, high) => [0, most ?? Math.max(high, 1) * 1.1] },
      own: { range: (_plot, _low, high) => [0, Math.max(high, 1) * ownShare] },
    },
    hooks: {
      setCursor: [({ cursor: { idx, left = -1 } }) => point(left < 0 || idx === null ? undefined : idx)],
      drawClear: [(plot) => drawMarks(plot, marks(), colour.mark)],
    },
    axes: [
      {
        ...axis,
        size: 26,
        grid: { show: false },
        values: (plot, at) => {
          const { min = 0, max = 0 } = plot.scales['x'] ?? {};
          const as = (max - min) * 1_000 > 2 * dayMs ? 'day' : 'minute';
          return at.map((seconds) => formatTime(seconds * 1_000, as));
        },
      },
      {
        ...axis,
        size: axisWidth,
        grid: { stroke: colour.grid, width: 1 },
        values: (_plot, at) => at.map(format),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, tone, own }) => ({
        label,
        scale: own === undefined ? 'y' : 'own',
        stroke: colour[tone],
        width: 1.5,
        ...(tone === 'main' && { fill: `${colour[tone]}1f` }),
        ...(tone === 'second' && { dash: [4, 3] }),
        points: { show: false, size: pointSize, fill: colour[tone], filter: dots },
      })),
    ],
  };
}

/** A line from top to bottom, with a flag. */
function drawMarks({ ctx, bbox, valToPos, scales }: uPlot, marks: readonly Mark[], colour: string): void {
  const { min = 0, max = 0 } = scales['x'] ?? {};
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  for (const { at } of marks.filter((mark) => mark.at >= min && mark.at <= max)) {
    const x = Math.round(valToPos(at, 'x', true));
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x + 7, bbox.top + 4);
    ctx.lineTo(x, bbox.top + 8);
    ctx.fill();
  }
  ctx.restore();
}
