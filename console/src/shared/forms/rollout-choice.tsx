/**
 * How a change reaches its nodes: the rollout policy that one chooses for it, and a preview of its waves, tried without
 * writing anything, where the service can tell. Shows nothing while there is no policy. Implements
 * `docs/contract/rollouts.md#starting-one`.
 */
import { Stack, Text } from '@mantine/core';
import { keepPreviousData, queryOptions, skipToken, useQuery } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { waveSizes, type RolloutPreview, type RolloutQuery } from '../rollout-preview.js';
import { settingsQuery } from '../settings.js';
import { formatCount } from '../ui/format.js';
import { Problem } from '../ui/problem.js';
import { Warnings } from '../ui/warnings.js';
import { text } from './forms.text.js';
import { policiesQuery, RolloutPolicySelect } from './rollout-policy-select.js';

interface ChosenRollout {
  readonly query: RolloutQuery;
  /** Null: as the settings say. */
  readonly name: string | null;
  choose(name: string | null): void;
}

export function useRollout(): ChosenRollout {
  const [name, choose] = useState<string | null>(null);
  return { name, choose, query: name === null ? {} : { rollout: name } };
}

interface RolloutChoiceProps {
  readonly chosen: ChosenRollout;
  /** The key of the command in the cache, which begins with the type that it is about. */
  readonly queryKey: readonly unknown[];
  /** The command as a dry run; absent where it cannot be tried before another one. @throws Refusal that the command would get */
  readonly tryIt?: (query: RolloutQuery, signal: AbortSignal) => Promise<RolloutPreview>;
}

export function RolloutChoice({ chosen: { name, query, choose }, queryKey, tryIt }: RolloutChoiceProps): ReactNode {
  const { data: policies } = useQuery(policiesQuery);
  const { data: settings } = useQuery(settingsQuery);
  const isAsked = (policies?.total ?? 0) > 0;
  const { data: preview, error } = useQuery(
    queryOptions({
      queryKey: [...queryKey, 'rollout', name],
      queryFn: tryIt === undefined ? skipToken : ({ signal }) => tryIt(query, signal),
      enabled: isAsked,
      placeholderData: keepPreviousData,
      meta: { follows: 'all' },
    }),
  );
  if (!isAsked) return null;
  const usual = settings?.rollout_policy ?? null;
  return (
    <Stack gap="xs" maw={480}>
      <RolloutPolicySelect
        label={text.rollout}
        placeholder={usual === null ? text.atOnceBySettings : text.bySettings(usual)}
        value={name}
        onChange={choose}
        {...(usual !== null && { also: [{ value: 'none', label: text.atOnce }] })}
      />
      {error !== null && <Problem error={error} />}
      {error === null && preview !== undefined && <Waves {...preview} />}
    </Stack>
  );
}

function Waves({ waves, warnings }: RolloutPreview): ReactNode {
  const sizes = waveSizes(waves);
  return (
    <>
      <Text size="sm" role="status">
        {sizes.length === 0
          ? text.noWaves
          : sizes.map((size, index) => `${text.wave(index + 1)}: ${text.nodes(formatCount(size), size)}`).join(' → ')}
      </Text>
      <Warnings sentences={warnings} title={null} />
    </>
  );
}
