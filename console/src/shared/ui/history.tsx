/** What a node, a chain or an upstream carried, over a day or a month. The address says which, and uPlot loads when it is shown. */
import { SegmentedControl, SimpleGrid, Skeleton, Text } from '@mantine/core';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, type ReactNode } from 'react';
import { api, dataOf, type Schemas } from '../api/client.js';
import { formatBytes, formatCount, formatMilliseconds, formatShare } from './format.js';
import { historyText as text } from './history.text.js';
import { useNow } from './now.js';
import type { PlotProps } from './plot.js';
import { Problem } from './problem.js';
import { Section } from './section.js';

/** A part that does not load must not take the page with it. */
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

type History = Schemas['History'];
type Point = Schemas['HistoryPoint'];
type HistoryStep = History['step'];

const stepSeconds: Readonly<Record<HistoryStep, number>> = { '1m': 60, '5m': 300, '1h': 3_600 };
const spanSeconds: Readonly<Record<HistoryStep, number>> = { '1m': 3_600, '5m': 86_400, '1h': 30 * 86_400 };
const paths = {
  node: '/api/nodes/{id}/history',
  l4_chain: '/api/l4-chains/{id}/history',
  l4_upstream: '/api/l4-upstreams/{id}/history',
} as const;
type HistoryOf = keyof typeof paths;

const historyQuery = (type: HistoryOf, id: string, step: HistoryStep) =>
  queryOptions({
    queryKey: ['history', type, id, step],
    queryFn: ({ signal }) => dataOf(api.GET(paths[type], { params: { path: { id }, query: { step } }, signal })),
  });

interface HistorySectionProps {
  readonly type: HistoryOf;
  readonly id: string;
}

export function HistorySection({ type, id }: HistorySectionProps): ReactNode {
  const { span } = useSearch({ strict: false });
  const navigate = useNavigate();
  const step: HistoryStep = span === 'month' ? '1h' : '5m';
  const { data, error, refetch } = useQuery(historyQuery(type, id, step));
  const show = (chosen: string): void =>
    void navigate({
      to: '.',
      search: (search) => ({ ...search, span: chosen === 'month' ? chosen : undefined }),
      replace: true,
      resetScroll: false,
    });
  return (
    <Section
      title={text.title}
      actions={
        <SegmentedControl
          size="xs"
          aria-label={text.span}
          value={step === '1h' ? 'month' : 'day'}
          onChange={show}
          data={[
            { value: 'day', label: text.day },
            { value: 'month', label: text.month },
          ]}
        />
      }
    >
      {data === undefined ? (
        error === null ? (
          <Waiting />
        ) : (
          <Problem error={error} retry={() => void refetch()} />
        )
      ) : data.recorded ? (
        <Plots {...data} />
      ) : (
        <Text size="sm">{text.off}</Text>
      )}
    </Section>
  );
}

/** As large as the plots. */
function Waiting(): ReactNode {
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      {Array.from({ length: 4 }, (_, index) => (
        <Skeleton key={index} h={200} />
      ))}
    </SimpleGrid>
  );
}

function Plots({ points, step }: History): ReactNode {
  const now = useNow() / 1_000;
  const seconds = stepSeconds[step];
  const last = Math.floor(now / seconds) * seconds;
  const times = Array.from(
    { length: spanSeconds[step] / seconds },
    (_, index) => last - spanSeconds[step] + (index + 1) * seconds,
  );
  const byTime = new Map(points.map((point) => [Date.parse(point.at) / 1_000, point]));
  const line = (of: (point: Point, lasted: number) => number | null): (number | null)[] =>
    times.map((time) => {
      const point = byTime.get(time);
      // The newest has not lasted as long as the others.
      return point === undefined ? null : of(point, Math.max(1, Math.min(seconds, now - time)));
    });
  const plots: readonly Omit<PlotProps, 'times'>[] = [
    {
      title: text.traffic,
      format: (value) => `${formatBytes(value)}/s`,
      lines: [
        { label: text.toClients, tone: 'main', values: line(({ bytes_out }, lasted) => bytes_out / lasted) },
        { label: text.fromClients, tone: 'second', values: line(({ bytes_in }, lasted) => bytes_in / lasted) },
      ],
    },
    {
      title: step === '5m' ? text.sessionsOfStep : text.sessionsOfHour,
      format: formatCount,
      lines: [
        { label: text.sessions, tone: 'main', values: line(({ sessions }) => sessions) },
        { label: text.errors, tone: 'bad', values: line(({ errors }) => errors) },
      ],
    },
    {
      title: text.roundTrip,
      format: formatMilliseconds,
      lines: [{ label: text.roundTrip, tone: 'main', values: line(({ rtt_ms }) => rtt_ms) }],
    },
    {
      title: text.online,
      format: formatShare,
      most: 1,
      lines: [{ label: text.online, tone: 'main', values: line(({ online }) => online) }],
    },
  ];
  return (
    <Suspense fallback={<Waiting />}>
      <SimpleGrid cols={{ base: 1, md: 2 }}>
        {plots.map((plot) => (
          <Plot key={plot.title} times={times} {...plot} />
        ))}
      </SimpleGrid>
    </Suspense>
  );
}
