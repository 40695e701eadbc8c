import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

const water: MantineColorsTuple = [
  "#e3f7f4",
  "#c9ece7",
  "#98d9d0",
  "#63c5b8",
  "#39b4a4",
  "#1fa293",
  "#11897b",
  "#0c7b6f",
  "#0b6e63",
  "#07544c",
];

/** Colours that keep the contrast of WCAG AA in both schemes. */
export const theme = createTheme({
  primaryColor: "water",
  primaryShade: { light: 8, dark: 8 },
  colors: { water },
  autoContrast: true,
  defaultRadius: "sm",
  fontFamilyMonospace: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace",
  headings: { fontWeight: "600", sizes: { h1: { fontSize: "1.35rem" }, h2: { fontSize: "1.05rem" } } },
  components: {
    Table: { defaultProps: { verticalSpacing: 6, fz: "sm" } },
    Modal: {
      defaultProps: {
        size: "lg",
        closeButtonProps: { "aria-label": "Close" },
        // A dialog's <header> would count as a second one of the page.
        attributes: { header: { role: "presentation" } },
      },
    },
  },
});

/** The component library's own greys are too pale for text. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#4b545d",
    "--mantine-color-placeholder": "#5f6871",
    "--mantine-color-anchor": "#0b6e63",
    "--mantine-color-error": "#c92a2a",
    "--leat-ok": "#0b7a3b",
    "--leat-bad": "#c92a2a",
    "--leat-wait": "#a35200",
    "--leat-rest": "#5f6871",
  },
  dark: {
    "--mantine-color-dimmed": "#b3b9bf",
    "--mantine-color-placeholder": "#a0a6ac",
    "--mantine-color-anchor": "#63c5b8",
    "--mantine-color-error": "#ff8787",
    "--leat-ok": "#51cf66",
    "--leat-bad": "#ff8787",
    "--leat-wait": "#ffc078",
    "--leat-rest": "#b3b9bf",
  },
});
