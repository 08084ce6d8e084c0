const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g

/** The text of a terminal without control sequences; an overwritten line has its final content. */
export const plainOutput = (text: string): string =>
  text
    .replace(SEQUENCES, '')
    .replace(/\r+\n/g, '\n')
    .split('\n')
    .map(line => line.slice(line.lastIndexOf('\r', line.length - 2) + 1))
    .join('\n')
