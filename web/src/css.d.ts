declare module "*.css" {
  const text: string; // in the tests, where a stylesheet is read as text
  export default text;
}
