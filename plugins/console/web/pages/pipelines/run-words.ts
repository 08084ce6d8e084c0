import type { PipelineRun, PipelineStatus } from '../../../../pipelines/contract.js'
import type { ToneWord } from '../../ui/page.js'

const TONES: { readonly [status in PipelineStatus]: ToneWord } = {
  running: ['busy', 'Runs'],
  success: ['good', 'Passed'],
  failed: ['bad', 'Failed'],
  canceled: ['warn', 'Stopped'],
  skipped: ['', 'Skipped'],
}

/** The colour and the word of a state. */
export const toneOfStatus = (status: PipelineStatus): ToneWord => TONES[status]

/** The names of forges, and of this sandbox. */
export const HOST_NAMES: { readonly [host in PipelineRun['host']]: string } = {
  github: 'GitHub',
  gitlab: 'GitLab',
  forgejo: 'Forgejo',
  gitea: 'Gitea',
  local: 'Before a push',
}

/** What a run is called. */
export const nameOfRun = ({ title, workflow, runId }: Pick<PipelineRun, 'title' | 'workflow' | 'runId'>): string =>
  title ?? workflow ?? `Run ${runId}`
