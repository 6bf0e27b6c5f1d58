/** Stands for a page that failed to load or to render; the rest of the console stays. */
import { Button, Code, Stack } from '@mantine/core';
import type { ErrorComponentProps } from '@tanstack/react-router';
import { useEffect, type ReactNode } from 'react';
import { useLive } from '../shared/live/live.js';
import { Empty } from '../shared/ui/empty.js';
import { Page } from '../shared/ui/page.js';
import { PageSkeleton } from '../shared/ui/page-skeleton.js';
import { text } from './shell.text.js';

/**
 * For a page that did not load: the service is away, or has another release. In the browser's own words the router would
 * reload at once, into nothing while the service is away.
 */
export function notLoaded(cause: Error): never {
  throw new Error(text.notLoaded, { cause });
}

/** What did not load, until it was tried anew, once: a missing file may stay missing. */
function missingIn(error: unknown): string | undefined {
  if (!(error instanceof Error) || error.message !== text.notLoaded) return undefined;
  const missing = String(error.cause);
  return sessionStorage.getItem(missing) === null ? missing : undefined;
}

export function Failed({ error }: ErrorComponentProps): ReactNode {
  const { kind } = useLive();
  const missing = missingIn(error);
  useEffect(() => {
    if (missing === undefined || kind === 'unreachable') return;
    // The stream may not know yet that the service is away.
    const reload = ({ ok }: Response): void => {
      if (!ok) return;
      sessionStorage.setItem(missing, 'reloaded');
      location.reload();
    };
    fetch('/healthz').then(reload, () => undefined);
  }, [missing, kind]);
  if (missing !== undefined) return <PageSkeleton />;
  return (
    <Page title={text.failed}>
      <Empty title={text.failedHint}>
        <Stack align="center" gap="sm">
          <Code>{error instanceof Error ? error.message : String(error)}</Code>
          <Button size="xs" onClick={() => location.reload()}>
            {text.loadAgain}
          </Button>
        </Stack>
      </Empty>
    </Page>
  );
}
