/**
 * The page of fleet files: a document becomes a plan, then an apply under the plan's etag. Only this page holds the
 * document and the issued PSKs; they are gone with it.
 */
import { Button, Checkbox, Fieldset, Group, NumberInput, Stack, TagsInput, Text } from '@mantine/core';
import { useState, type ReactNode } from 'react';
import { newIdempotencyKey } from '../shared/api/client.js';
import { useAttempt } from '../shared/forms/attempt.js';
import { useLoss } from '../shared/forms/losses.js';
import { fileDrop, TextFile } from '../shared/forms/text-file.js';
import { RolloutChoice, useRollout } from '../shared/forms/rollout-choice.js';
import { useMay } from '../shared/session.js';
import { sayDone } from '../shared/ui/done.js';
import { Page } from '../shared/ui/page.js';
import { Problem } from '../shared/ui/problem.js';
import { Section } from '../shared/ui/section.js';
import { sentenceOf } from '../shared/ui/sentence.js';
import { AppliedView } from './applied-view.js';
import { applyFile, planFile, tryApply, type Applied, type Plan, type Request } from './fleet-file.js';
import { text } from './fleet-file.text.js';
import { PlanView } from './plan-view.js';
import { Sets } from './sets.js';

const noFile: Request = { document: '' };

export function FleetFilePage(): ReactNode {
  const [applied, setApplied] = useState<Applied>();
  return (
    <Page title={text.title}>
      {applied === undefined ? (
        <File onApplied={setApplied} />
      ) : (
        <AppliedView applied={applied} onNext={() => setApplied(undefined)} />
      )}
      <Sets />
    </Page>
  );
}

interface MadePlan {
  readonly of: Request;
  readonly plan: Plan;
  readonly idempotencyKey: string;
}

function File({ onApplied }: { readonly onApplied: (applied: Applied) => void }): ReactNode {
  const mayApply = useMay('operator');
  const [request, setRequest] = useState(noFile);
  const [made, setMade] = useState<MadePlan>();
  const planning = useAttempt();
  const applying = useAttempt();
  const rollout = useRollout();
  useLoss('typed', () => (request.document.trim() === '' ? [] : [text.file]));
  /** A plan belongs to one document and its options, which may have changed while it was made. */
  const plan = made?.of === request ? made : undefined;
  const change = (changed: Partial<Request>): void => {
    setRequest({ ...request, ...changed });
    planning.forget();
    applying.forget();
  };
  const show = (): Promise<void> =>
    planning.attempt(async () => {
      applying.forget();
      setMade(undefined);
      setMade({ of: request, plan: await planFile(request), idempotencyKey: newIdempotencyKey() });
    });
  const apply = ({ plan: { etag }, idempotencyKey }: MadePlan): Promise<void> =>
    applying.attempt(async () => {
      const { data, requestId } = await applyFile(request, etag, idempotencyKey, rollout.query);
      const undone = data.commands.length === 1 ? { resourceId: data.apply_id, requestId } : undefined;
      sayDone(text.applied, undone, data.warnings);
      onApplied(data);
    });
  const writes = plan !== undefined && plan.plan.commands > 0 && plan.plan.obstacles.length === 0;
  return (
    <>
      <Section title={text.applyTitle}>
        <Stack gap="sm" maw={820} {...fileDrop((document) => change({ document }))}>
          <Text size="sm">{text.meaning}</Text>
          <TextFile
            label={text.file}
            description={text.fileHint}
            accept=".yaml,.yml,.json"
            rows={12}
            value={request.document}
            onChange={(document) => change({ document })}
            error={planning.refused && sentenceOf(planning.refused)}
          />
          <Options request={request} onChange={change} />
          <Group>
            <Button loading={planning.working} disabled={request.document.trim() === ''} onClick={() => void show()}>
              {text.plan}
            </Button>
          </Group>
        </Stack>
      </Section>
      {plan !== undefined && (
        <PlanView plan={plan.plan}>
          {applying.refused !== undefined && <Problem error={applying.refused} retry={() => void show()} />}
          {mayApply && writes && (
            <>
              <RolloutChoice
                chosen={rollout}
                queryKey={['fleet', 'try', plan.plan.etag]}
                tryIt={(query, signal) => tryApply(request, query, signal)}
              />
              <Group>
                <Button loading={applying.working} onClick={() => void apply(plan)}>
                  {text.apply}
                </Button>
              </Group>
            </>
          )}
        </PlanView>
      )}
    </>
  );
}

interface OptionsProps {
  readonly request: Request;
  readonly onChange: (changed: Partial<Request>) => void;
}

function Options({ request, onChange }: OptionsProps): ReactNode {
  const mayApply = useMay('operator');
  const { prune = false, max_deletes: maxDeletes, adopt = false, adopt_from: adoptFrom = [] } = request;
  return (
    <Fieldset variant="unstyled" m={0} p={0} legend={text.options}>
      <Stack gap="xs" pt="xs">
        <Checkbox
          label={text.prune}
          checked={prune}
          onChange={({ currentTarget }) => onChange({ prune: currentTarget.checked })}
        />
        {prune && (
          <NumberInput
            label={text.maxDeletes}
            description={text.maxDeletesHint}
            min={0}
            maw={320}
            value={maxDeletes ?? ''}
            onChange={(value) => onChange({ max_deletes: typeof value === 'number' ? value : undefined })}
          />
        )}
        <Checkbox
          label={text.adopt}
          checked={adopt}
          onChange={({ currentTarget }) => onChange({ adopt: currentTarget.checked })}
        />
        {mayApply && (
          <Checkbox
            label={text.issuePsks}
            checked={request.issue_psks ?? false}
            onChange={({ currentTarget }) => onChange({ issue_psks: currentTarget.checked })}
          />
        )}
        <TagsInput
          label={text.adoptFrom}
          description={text.adoptFromHint}
          maw={480}
          value={adoptFrom}
          onChange={(sets) => onChange({ adopt_from: sets.length === 0 ? undefined : sets })}
        />
      </Stack>
    </Fieldset>
  );
}
