import type { Automation, AutomationDetail } from '../../../../automations/contract.js'

/** What its author wrote, without what became of it. */
export const definitionOf = ({
  runs: _runs,
  nextRun: _next,
  running: _running,
  queued: _queued,
  tokenAt: _token,
  failures: _failures,
  lastError: _error,
  missed: _missed,
  disabledBy: _disabled,
  problem: _problem,
  installs: _installs,
  ...definition
}: AutomationDetail): Automation => definition
