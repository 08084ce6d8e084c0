import { isBuiltin } from 'node:module'

const COMMENTS = /\/\*[\s\S]*?\*\/|(?<![:'"`\w])\/\/[^\n]*/g
const IMPORT = /(?:^|[;}\n])\s*(?:import|export)\b[^'"`;(){}]*(?:\{[^}]*\}\s*from\s*|from\s*)?["']([^"'\n]+)["']/g
const CALLED = /\b(?:import|require)\s*\(\s*["']([^"'\n]+)["']/g

/** The imports of a bundle, by its text. */
export const bundleImports = (text: string): string[] => [
  ...new Set(
    [IMPORT, CALLED].flatMap(form => [...text.replace(COMMENTS, ' ').matchAll(form)].map(([, name]) => name!)),
  ),
]

/** The imports of a backend that are not built into Node. */
export const foreignImports = (text: string): string[] => bundleImports(text).filter(name => !isBuiltin(name))
