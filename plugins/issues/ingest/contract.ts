import type { tags } from 'typia'
import type { Positive } from '../../../sdk/types.js'

/** What a program sends: the bytes of the body in base64, with the key in a header or the query. */
export interface IngestInput {
  /** The reporter, by its number. */
  project: Positive
  /** The reporter's key, where the header does not have it. */
  sentry_key?: string & tags.MaxLength<200>
  /** Holds the key as `sentry_key=…`. */
  'x-sentry-auth'?: string & tags.MaxLength<4000>
  body?: string
}

/** The open addresses that embedded reporters send to. */
export interface IngestCalls {
  /**
   * Report failures of a program, as the SDKs of Sentry do: an envelope with its items, which `content-encoding` may
   * compress as gzip, deflate or br.
   *
   * The DSN is `{scheme}://{key}@{host}/ingest/{project}`. Items `event`, `feedback` and `user_report` are kept; other
   * kinds are counted and dropped. A broken item spoils no other one, and an event that was sent before is not counted
   * again. What was answered survives the end of the daemon.
   *
   * - 400: the first line is not JSON, or no item can be read
   * - 401: the key is missing or wrong
   * - 403: the reporter is switched off, or pages of this origin may not report
   * - 413: over 1 MiB as sent, 8 MiB unpacked, 1 MiB in an item, 64 KiB in a line before an item, 64 levels or 30 items
   * - 415: another `content-encoding`
   * - 429: the reporter's events of a day, or 500 within 10 s; `x-sentry-rate-limits` says how long to wait
   * - 503: more arrives than can be stored
   */
  'POST /ingest/api/{project}/envelope/'(input: IngestInput): { id: string }

  /**
   * Report one failure as JSON, as older SDKs do; otherwise as an envelope.
   *
   * - 400: the body is not an event as JSON
   * - 401: the key is missing or wrong
   * - 403: the reporter is switched off, or pages of this origin may not report
   * - 413: over 1 MiB as sent or unpacked, or 64 levels
   * - 415: another `content-encoding`
   * - 429: the reporter's events of a day, or 500 within 10 s; `x-sentry-rate-limits` says how long to wait
   * - 503: more arrives than can be stored
   */
  'POST /ingest/api/{project}/store/'(input: IngestInput): { id: string }
}
