import type { ForgeJob, ForgeRun } from './forge.js'
import {
  givenCount,
  givenNames,
  givenObject,
  givenText,
  givenTime,
  givenUrl,
  givenFields,
  secondsBetween,
  statusOfWord,
  type GivenJson,
} from './given.js'

/** A run as GitHub and Gitea write it; undefined: it has no id. */
export const workflowRun = (given: GivenJson): ForgeRun | undefined => {
  const runId = givenCount(given.id, Number.MAX_SAFE_INTEGER)
  if (runId === undefined) return undefined
  const status =
    given.status === 'completed' ? statusOfWord(givenText(given.conclusion)) : statusOfWord(givenText(given.status))
  const isFinal = status !== 'running'
  const actor = givenObject(given.triggering_actor ?? given.trigger_actor ?? given.actor)
  const startedAt = givenTime(given.run_started_at) ?? givenTime(given.started_at)
  const endedAt = givenTime(given.completed_at) ?? givenTime(given.updated_at)
  const createdAt = givenTime(given.created_at) ?? startedAt ?? endedAt ?? 0
  const path = givenText(given.path, 1000).split('@')[0]!
  return {
    ...{ runId, status, branch: givenText(given.head_branch), sha: givenText(given.head_sha, 64) },
    ...{ url: givenUrl(given.html_url), createdAt, updatedAt: endedAt ?? createdAt },
    ...givenFields({
      number: givenCount(given.run_number),
      attempt: givenCount(given.run_attempt),
      title: givenText(given.display_title),
      workflow: givenText(given.name) || path.split('/').at(-1),
      authorName: givenText(actor.login),
      authorAvatarUrl: givenUrl(actor.avatar_url),
      trigger: givenText(given.event),
      finishedAt: isFinal ? endedAt : undefined,
      durationSeconds: isFinal ? secondsBetween(startedAt ?? createdAt, endedAt) : undefined,
      definition: path,
    }),
  }
}

/** A job as GitHub and Gitea write it. */
export const workflowJob = (given: GivenJson): ForgeJob => {
  const startedAt = givenTime(given.started_at)
  const status =
    given.status === 'completed' ? statusOfWord(givenText(given.conclusion)) : statusOfWord(givenText(given.status))
  const finishedAt = status === 'running' ? undefined : givenTime(given.completed_at)
  return {
    ...{ id: givenText(given.id), name: givenText(given.name), status },
    ...givenFields({
      needs: givenNames(given.needs),
      startedAt,
      finishedAt,
      durationSeconds: secondsBetween(startedAt, finishedAt),
      webUrl: givenUrl(given.html_url),
    }),
  }
}
