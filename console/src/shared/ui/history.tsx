/** What the fleet, a node, a chain or an upstream carried, over four ranges. The address says which, and uPlot loads when it is shown. */
import { SegmentedControl, SimpleGrid, Skeleton, Text } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useMemo, type ReactNode } from 'react';
import { api, dataOf, serviceNow, type Schemas } from '../api/client.js';
import {
  onceOver,
  ranges,
  spans,
  stepSeconds,
  timesOf,
  valuesAt,
  type Mark,
  type Point,
  type Span,
  type Step,
} from './curve.js';
import { formatBytes, formatCount, formatMilliseconds, formatShare } from './format.js';
import { historyText as text } from './history.text.js';
import type { PlotProps } from './plot.js';
import { Problem } from './problem.js';
import { Section } from './section.js';

/** A part that does not load must not break the page. */
const Plot = lazy(async () => {
  try {
    return { default: (await import('./plot.js')).Plot };
  } catch (error) {
    console.error('Plots cannot be drawn:', error);
    return { default: NoPlot };
  }
});

function NoPlot({ title }: PlotProps): ReactNode {
  return (
    <Text size="sm" c="dimmed">
      {title}: {text.notDrawn}
    </Text>
  );
}

const paths = {
  fleet: '/api/dashboard/history',
  node: '/api/nodes/{id}/history',
  l4_chain: '/api/l4-chains/{id}/history',
  l4_upstream: '/api/l4-upstreams/{id}/history',
} as const;
type HistoryOf = keyof typeof paths;

const historyQuery = (type: HistoryOf, id: string, step: Step) =>
  queryOptions({
    queryKey: ['history', type, id, step],
    queryFn: async ({ signal }): Promise<Schemas['History'] & { readonly readAt: number }> => {
      const path = paths[type];
      const history = await dataOf(
        path === paths.fleet
          ? api.GET(path, { params: { query: { step } }, signal })
          : api.GET(path, { params: { path: { id }, query: { step } }, signal }),
      );
      return { ...history, readAt: serviceNow() / 1_000 };
    },
  });

/** Each is a plot. */
const figures = ['traffic', 'sessions', 'roundTrip', 'online'] as const;
/** `load` is traffic and failed sessions in one plot. */
type Figure = (typeof figures)[number] | 'load';

interface HistorySectionProps {
  readonly type: HistoryOf;
  /** Empty for the whole fleet. */
  readonly id?: string;
  readonly title?: string;
  /** Which plots, beside one another; each over the whole width when there are two at most. */
  readonly shown?: readonly Figure[];
  /** The range if the address names none. */
  readonly usual?: Span;
  /** Where something was deployed. */
  readonly marks?: readonly Mark[];
}

const noMarks: readonly Mark[] = [];

export function HistorySection(props: HistorySectionProps): ReactNode {
  const { type, id = '', title = text.title, shown = figures, usual = 'day', marks = noMarks } = props;
  const { span = usual } = useSearch({ strict: false });
  const navigate = useNavigate();
  const { step } = ranges[span];
  const { data, error, refetch } = useQuery(historyQuery(type, id, step));
  const show = (chosen: Span): void =>
    void navigate({
      to: '.',
      search: (search) => ({ ...search, span: chosen === usual ? undefined : chosen }),
      replace: true,
      resetScroll: false,
    });
  return (
    <Section
      title={title}
      actions={
        <SegmentedControl<Span>
          size="xs"
          aria-label={text.span}
          value={span}
          onChange={show}
          data={spans.map((value) => ({ value, label: text.spans[value] }))}
        />
      }
    >
      {data === undefined ? (
        error === null ? (
          <Waiting plots={shown.length} />
        ) : (
          <Problem error={error} retry={() => void refetch()} />
        )
      ) : data.recorded ? (
        <Plots {...data} span={span} shown={shown} marks={marks} />
      ) : (
        <Text size="sm">{text.off}</Text>
      )}
    </Section>
  );
}

const colsOf = (plots: number) => ({ base: 1, ...(plots > 1 && { md: 2 }) });

/** As large as the plots. */
function Waiting({ plots }: { readonly plots: number }): ReactNode {
  return (
    <SimpleGrid cols={colsOf(plots)}>
      {Array.from({ length: plots }, (_, index) => (
        <Skeleton key={index} h={162} />
      ))}
    </SimpleGrid>
  );
}

interface PlotsProps {
  readonly points: readonly Point[];
  /** In seconds; fixed, because a running clock would redraw everything. */
  readonly readAt: number;
  readonly span: Span;
  readonly shown: readonly Figure[];
  readonly marks: readonly Mark[];
}

function Plots({ points, readAt, span, shown, marks }: PlotsProps): ReactNode {
  const plots = useMemo(() => {
    const times = timesOf(span, readAt);
    const all = plotsOf(ranges[span].step, (of) => valuesAt(times, points, readAt, of));
    return shown.map((figure) => ({ times, ...all[figure] }));
  }, [points, readAt, span, shown]);
  return (
    <Suspense fallback={<Waiting plots={shown.length} />}>
      <SimpleGrid cols={colsOf(plots.length)}>
        {plots.map((plot) => (
          <Plot key={plot.title} marks={marks} {...plot} />
        ))}
      </SimpleGrid>
    </Suspense>
  );
}

/** A count as if its step were over: otherwise the newest one would seem to fall. */
function whole(count: number, lasted: number, step: Step): number {
  const seconds = stepSeconds[step];
  return Math.round((count * seconds) / Math.max(lasted, seconds / 4));
}

type Values = PlotProps['lines'][number]['values'];

function plotsOf(
  step: Step,
  line: (of: (point: Point, lasted: number) => number | null) => Values,
): Readonly<Record<Figure, Omit<PlotProps, 'times'>>> {
  const bytes: PlotProps['lines'] = [
    { label: text.toClients, tone: 'main', values: line(({ bytes_out }, lasted) => bytes_out / lasted) },
    { label: text.fromClients, tone: 'second', values: line(({ bytes_in }, lasted) => bytes_in / lasted) },
  ];
  const perSecond = (value: number): string => `${formatBytes(value)}/s`;
  return {
    load: {
      title: text.traffic,
      format: perSecond,
      height: 190,
      lines: [
        ...bytes,
        {
          label: text.failed[step],
          tone: 'bad',
          values: line(({ errors }, lasted) => whole(errors, lasted, step)),
          own: formatCount,
        },
      ],
    },
    traffic: {
      title: text.traffic,
      format: perSecond,
      lines: bytes,
    },
    sessions: {
      title: text.sessionsOf[step],
      format: formatCount,
      lines: [
        { label: text.sessions, tone: 'main', values: line(({ sessions }, lasted) => whole(sessions, lasted, step)) },
        { label: text.errors, tone: 'bad', values: line(({ errors }, lasted) => whole(errors, lasted, step)) },
      ],
    },
    roundTrip: {
      title: text.roundTrip,
      format: formatMilliseconds,
      lines: [{ label: text.roundTrip, tone: 'main', values: line(({ rtt_ms }) => rtt_ms) }],
    },
    online: {
      title: text.online,
      format: formatShare,
      most: 1,
      lines: [{ label: text.online, tone: 'main', values: onceOver(line(({ online }) => online)) }],
    },
  };
}
