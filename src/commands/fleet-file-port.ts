/** Port: what REST calls for documents of the fleet. Types only. Implements `docs/contract/automation.md#the-fleet-as-a-file`. */
import type { ChangedNode } from '../domain/fleet-file/carry-out.js';
import type { StepAction } from '../domain/fleet-file/compare.js';
import type { DocumentMistake, FileFlags, FleetDocument } from '../domain/fleet-file/document.js';
import type { AuditChange } from '../domain/resource/audit-change.js';
import type { Needs } from '../domain/snapshot/features.js';
import type { RecordedCommand } from '../kernel/event.js';
import type { CommandContext } from './port.js';

/** A document of the fleet and what its sender allows. */
export interface FileRequest {
  readonly document: FleetDocument;
  readonly flags: FileFlags;
  /** SHA-256 of the document's text. */
  readonly digest: string;
}

export interface ApplyRequest extends FileRequest {
  readonly issuePsks: boolean;
}

/** The outcome of an apply; with mistakes, nothing was written. */
export type FileApplied =
  | { readonly kind: 'mistakes'; readonly mistakes: readonly DocumentMistake[] }
  | {
      readonly kind: 'done';
      readonly applyId: string;
      /** Null for resources that no set owns. */
      readonly set: string | null;
      /** Newest last. */
      readonly commands: readonly RecordedCommand[];
      readonly controlPsks: readonly { readonly node: string; readonly controlPsk: string | null }[];
      readonly incomplete: { readonly error: string; readonly commandsLeft: number } | null;
      readonly position: number;
    };

/** The outcome of the revert of an apply. */
export interface FleetReverted {
  /** In the order in which they were written, or in which a dry run would write them. */
  readonly commands: readonly RecordedCommand[];
  /** The commands of the apply that were not reverted. */
  readonly notReverted: readonly RecordedCommand[];
  readonly position: number;
}

export interface PlannedStep {
  readonly action: StepAction;
  /** `id` is null before it exists. */
  readonly resource: { readonly type: string; readonly name: string; readonly id: string | null };
  /** With names in place of ids, secrets masked. */
  readonly changes: readonly AuditChange[];
}

export interface FilePlan {
  /** The mistakes of the document; with any, there are no steps. */
  readonly mistakes: readonly DocumentMistake[];
  readonly steps: readonly PlannedStep[];
  readonly nodes: readonly ChangedNode[];
  /** Why an apply would be refused. */
  readonly obstacles: readonly string[];
  /** What its steps ask of agents. */
  readonly needs: Needs;
  /** How many commands an apply would write. */
  readonly commands: number;
  readonly etag: string;
}

export interface FleetFileHandlers {
  /** Writes nothing. @throws ServiceError `unavailable` */
  plan(request: FileRequest): Promise<FilePlan>;
  /**
   * @param ifMatch etags of plans, one of which must still be valid; `*` for any
   * @throws ServiceError `precondition_failed`, `conflict` with every obstacle, `unavailable`
   */
  apply(ctx: CommandContext, request: ApplyRequest, ifMatch: '*' | readonly string[] | undefined): Promise<FileApplied>;
  /** The outcome of an apply; undefined when there is none with the id. @throws ServiceError `unavailable` */
  find(applyId: string): Promise<Extract<FileApplied, { readonly kind: 'done' }> | undefined>;
  /**
   * Reverts the commands of an apply, newest first, except rotations.
   * @throws ServiceError `not_found`, `conflict` with every obstacle, `unavailable`
   */
  revert(ctx: CommandContext, applyId: string, dryRun: boolean): Promise<FleetReverted>;
  /** Releases the resources of a set. @throws ServiceError `not_found`, `unavailable` */
  release(ctx: CommandContext, set: string): Promise<Omit<FleetReverted, 'notReverted'>>;
}
