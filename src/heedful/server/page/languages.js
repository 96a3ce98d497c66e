// Names of languages, as the browser knows them.

/** The name of a language code, or another word where there is no code. */
export function languageName(code, otherwise) {
  if (!code) return otherwise;
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}
