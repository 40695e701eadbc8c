/** An application to begin with, over the page views that `leat dev` produces. */
export const SAMPLE = `\
BEGIN APPLICATION shop
  CREATE VIRTUAL STREAM virtual.public.sixes AS
    SELECT userid, pageid, viewtime FROM pageviews WHERE userid = 'User_6';
  CREATE STREAM pages_of_6 AS SELECT pageid, viewtime FROM virtual.public.sixes;
  CREATE STREAM first_pages_of_6 AS SELECT pageid FROM virtual.public.sixes WHERE pageid = 'Page_1';
END APPLICATION;`;
