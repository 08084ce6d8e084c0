/** Variables that decide how programs run, and those that the sandbox sets itself. */
const MEANINGFUL = /^(?:PATH|HOME|SHELL|IFS|ENV|PWD|TMPDIR|(?:BASH|LD|DYLD|NODE|GIT|SANDBOX|XDG)_.*|PYTHON.*|SSH_A.*)$/
/** Programs read these in both cases. */
const PROXY = /_proxy$/i

/** Whether a variable of this name means something to programs, so that no connection or extension may set it. */
export const isMeaningfulVariable = (name: string): boolean => MEANINGFUL.test(name) || PROXY.test(name)
