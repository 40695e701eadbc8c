import{r as e}from"./rolldown-runtime-XKyaHtl9.js";import{_ as t,d as n,h as r,l as i,m as a,n as o,o as s,r as c,s as l,t as u,u as d,v as f,y as p}from"./CodeEditor-BCQz_JF6.js";import{n as ee,t as te}from"./jsx-runtime-C3cWAN_r.js";var m=36,h=1,g=2,_=3,v=4,ne=5,re=6,ie=7,ae=8,oe=9,se=10,y=11,ce=12,le=13,ue=14,b=15,x=16,S=17,C=18,de=19,w=20,T=21,E=22,fe=23,pe=24;function D(e){return e>=65&&e<=90||e>=97&&e<=122||e>=48&&e<=57}function me(e){return e>=48&&e<=57||e>=97&&e<=102||e>=65&&e<=70}function O(e,t,n){for(let r=!1;;){if(e.next<0)return;if(e.next==t&&!r){e.advance();return}r=n&&!r&&e.next==92,e.advance()}}function he(e,t){scan:for(;;){if(e.next<0)return;if(e.next==36){e.advance();for(let n=0;n<t.length;n++){if(e.next!=t.charCodeAt(n))continue scan;e.advance()}if(e.next==36){e.advance();return}}else e.advance()}}function k(e,t){let n=`[{<(`.indexOf(String.fromCharCode(t)),r=n<0?t:`]}>)`.charCodeAt(n);for(;;){if(e.next<0)return;if(e.next==r&&e.peek(1)==39){e.advance(2);return}e.advance()}}function A(e,t){for(;e.next==95||D(e.next);)t!=null&&(t+=String.fromCharCode(e.next)),e.advance();return t}function j(e){if(e.next==39||e.next==34||e.next==96){let t=e.next;e.advance(),O(e,t,!1)}else A(e)}function M(e,t){for(;e.next==48||e.next==49;)e.advance();t&&e.next==t&&e.advance()}function N(e,t){for(;;){if(e.next==46){if(t)break;t=!0}else if(e.next<48||e.next>57)break;e.advance()}if(e.next==69||e.next==101)for(e.advance(),(e.next==43||e.next==45)&&e.advance();e.next>=48&&e.next<=57;)e.advance()}function P(e){for(;!(e.next<0||e.next==10);)e.advance()}function F(e,t){for(let n=0;n<t.length;n++)if(t.charCodeAt(n)==e)return!0;return!1}var I=` 	\r
`;function L(e,t,n){let r=Object.create(null);r.true=r.false=ne,r.null=r.unknown=re;for(let t of e.split(` `))t&&(r[t]=w);for(let e of t.split(` `))e&&(r[e]=T);for(let e of(n||``).split(` `))e&&(r[e]=pe);return r}var R={backslashEscapes:!1,hashComments:!1,spaceAfterDashes:!1,slashComments:!1,doubleQuotedStrings:!1,doubleDollarQuotedStrings:!1,unquotedBitLiterals:!1,treatBitsAsBytes:!1,charSetCasts:!1,plsqlQuotingMechanism:!1,operatorChars:`*+-%<>!=&|~^/`,specialVar:`?`,identifierQuotes:`"`,caseInsensitiveIdentifiers:!1,words:L(`absolute action add after all allocate alter and any are as asc assertion at authorization before begin between both breadth by call cascade cascaded case cast catalog check close collate collation column commit condition connect connection constraint constraints constructor continue corresponding count create cross cube current current_date current_default_transform_group current_transform_group_for_type current_path current_role current_time current_timestamp current_user cursor cycle data day deallocate declare default deferrable deferred delete depth deref desc describe descriptor deterministic diagnostics disconnect distinct do domain drop dynamic each else elseif end end-exec equals escape except exception exec execute exists exit external fetch first for foreign found from free full function general get global go goto grant group grouping handle having hold hour identity if immediate in indicator initially inner inout input insert intersect into is isolation join key language last lateral leading leave left level like limit local localtime localtimestamp locator loop map match method minute modifies module month names natural nesting new next no none not of old on only open option or order ordinality out outer output overlaps pad parameter partial path prepare preserve primary prior privileges procedure public read reads recursive redo ref references referencing relative release repeat resignal restrict result return returns revoke right role rollback rollup routine row rows savepoint schema scroll search second section select session session_user set sets signal similar size some space specific specifictype sql sqlexception sqlstate sqlwarning start state static system_user table temporary then timezone_hour timezone_minute to trailing transaction translation treat trigger under undo union unique unnest until update usage user using value values view when whenever where while with without work write year zone `,`array binary bit boolean char character clob date decimal double float int integer interval large national nchar nclob numeric object precision real smallint time timestamp varchar varying `)};function ge(e,t,n,r){let i={};for(let t in R)i[t]=(e.hasOwnProperty(t)?e:R)[t];return t&&(i.words=L(t,n||``,r)),i}function z(e){return new s(t=>{let{next:n}=t;if(t.advance(),F(n,I)){for(;F(t.next,I);)t.advance();t.acceptToken(m)}else if(n==36&&e.doubleDollarQuotedStrings){let e=A(t,``);t.next==36&&(t.advance(),he(t,e),t.acceptToken(_))}else if(n==39||n==34&&e.doubleQuotedStrings)O(t,n,e.backslashEscapes),t.acceptToken(_);else if(n==35&&e.hashComments||n==47&&t.next==47&&e.slashComments)P(t),t.acceptToken(h);else if(n==45&&t.next==45&&(!e.spaceAfterDashes||t.peek(1)==32))P(t),t.acceptToken(h);else if(n==47&&t.next==42){t.advance();for(let e=1;;){let n=t.next;if(t.next<0)break;if(t.advance(),n==42&&t.next==47){if(e--,t.advance(),!e)break}else n==47&&t.next==42&&(e++,t.advance())}t.acceptToken(g)}else if((n==101||n==69)&&t.next==39)t.advance(),O(t,39,!0),t.acceptToken(_);else if((n==110||n==78)&&t.next==39&&e.charSetCasts)t.advance(),O(t,39,e.backslashEscapes),t.acceptToken(_);else if(n==95&&e.charSetCasts)for(let n=0;;n++){if(t.next==39&&n>1){t.advance(),O(t,39,e.backslashEscapes),t.acceptToken(_);break}if(!D(t.next))break;t.advance()}else if(e.plsqlQuotingMechanism&&(n==113||n==81)&&t.next==39&&t.peek(1)>0&&!F(t.peek(1),I)){let e=t.peek(1);t.advance(2),k(t,e),t.acceptToken(_)}else if(F(n,e.identifierQuotes))O(t,n==91?93:n,!1),t.acceptToken(de);else if(n==40)t.acceptToken(ie);else if(n==41)t.acceptToken(ae);else if(n==123)t.acceptToken(oe);else if(n==125)t.acceptToken(se);else if(n==91)t.acceptToken(y);else if(n==93)t.acceptToken(ce);else if(n==59)t.acceptToken(le);else if(e.unquotedBitLiterals&&n==48&&t.next==98)t.advance(),M(t),t.acceptToken(E);else if((n==98||n==66)&&(t.next==39||t.next==34)){let n=t.next;t.advance(),e.treatBitsAsBytes?(O(t,n,e.backslashEscapes),t.acceptToken(fe)):(M(t,n),t.acceptToken(E))}else if(n==48&&(t.next==120||t.next==88)||(n==120||n==88)&&t.next==39){let e=t.next==39;for(t.advance();me(t.next);)t.advance();e&&t.next==39&&t.advance(),t.acceptToken(v)}else if(n==46&&t.next>=48&&t.next<=57)N(t,!0),t.acceptToken(v);else if(n==46)t.acceptToken(ue);else if(n>=48&&n<=57)N(t,!1),t.acceptToken(v);else if(F(n,e.operatorChars)){for(;F(t.next,e.operatorChars);)t.advance();t.acceptToken(b)}else if(F(n,e.specialVar))t.next==n&&t.advance(),j(t),t.acceptToken(S);else if(n==58||n==44)t.acceptToken(x);else if(D(n)){let r=A(t,String.fromCharCode(n));t.acceptToken(t.next==46||t.peek(-r.length-1)==46?C:e.words[r.toLowerCase()]??C)}})}var B=z(R),_e=l.deserialize({version:14,states:"%vQ]QQOOO#wQRO'#DSO$OQQO'#CwO%eQQO'#CxO%lQQO'#CyO%sQQO'#CzOOQQ'#DS'#DSOOQQ'#C}'#C}O'UQRO'#C{OOQQ'#Cv'#CvOOQQ'#C|'#C|Q]QQOOQOQQOOO'`QQO'#DOO(xQRO,59cO)PQQO,59cO)UQQO'#DSOOQQ,59d,59dO)cQQO,59dOOQQ,59e,59eO)jQQO,59eOOQQ,59f,59fO)qQQO,59fOOQQ-E6{-E6{OOQQ,59b,59bOOQQ-E6z-E6zOOQQ,59j,59jOOQQ-E6|-E6|O+VQRO1G.}O+^QQO,59cOOQQ1G/O1G/OOOQQ1G/P1G/POOQQ1G/Q1G/QP+kQQO'#C}O+rQQO1G.}O)PQQO,59cO,PQQO'#Cw",stateData:",[~OtOSPOSQOS~ORUOSUOTUOUUOVROXSOZTO]XO^QO_UO`UOaPObPOcPOdUOeUOfUOgUOhUO~O^]ORvXSvXTvXUvXVvXXvXZvX]vX_vX`vXavXbvXcvXdvXevXfvXgvXhvX~OsvX~P!jOa_Ob_Oc_O~ORUOSUOTUOUUOVROXSOZTO^tO_UO`UOa`Ob`Oc`OdUOeUOfUOgUOhUO~OWaO~P$ZOYcO~P$ZO[eO~P$ZORUOSUOTUOUUOVROXSOZTO^QO_UO`UOaPObPOcPOdUOeUOfUOgUOhUO~O]hOsoX~P%zOajObjOcjO~O^]ORkaSkaTkaUkaVkaXkaZka]ka_ka`kaakabkackadkaekafkagkahka~Oska~P'kO^]O~OWvXYvX[vX~P!jOWnO~P$ZOYoO~P$ZO[pO~P$ZO^]ORkiSkiTkiUkiVkiXkiZki]ki_ki`kiakibkickidkiekifkigkihki~Oski~P)xOWkaYka[ka~P'kO]hO~P$ZOWkiYki[ki~P)xOasObsOcsO~O",goto:"#hwPPPPPPPPPPPPPPPPPPPPPPPPPPx||||!Y!^!d!xPPP#[TYOZeUORSTWZbdfqT[OZQZORiZSWOZQbRQdSQfTZgWbdfqQ^PWk^lmrQl_Qm`RrseVORSTWZbdfq",nodeNames:`⚠ LineComment BlockComment String Number Bool Null ( ) { } [ ] ; . Operator Punctuation SpecialVar Identifier QuotedIdentifier Keyword Type Bits Bytes Builtin Script Statement CompositeIdentifier Parens Braces Brackets Statement`,maxTerm:38,nodeProps:[[`isolate`,-4,1,2,3,19,``]],skippedNodes:[0,1,2],repeatNodeCount:3,tokenData:`RORO`,tokenizers:[0,B],topRules:{Script:[0,25]},tokenPrec:0});function V(e){let t=e.cursor().moveTo(e.from,-1);for(;/Comment/.test(t.name);)t.moveTo(t.from,-1);return t.node}function H(e,t){let n=e.sliceString(t.from,t.to),r=/^([`'"\[])(.*)([`'"\]])$/.exec(n);return r?r[2]:n}function U(e){return e&&(e.name==`Identifier`||e.name==`QuotedIdentifier`)}function ve(e,t){if(t.name==`CompositeIdentifier`){let n=[];for(let r=t.firstChild;r;r=r.nextSibling)U(r)&&n.push(H(e,r));return n}return[H(e,t)]}function W(e,t){for(let n=[];;){if(!t||t.name!=`.`)return n;let r=V(t);if(!U(r))return n;n.unshift(H(e,r)),t=V(r)}}function G(e,n){let r=t(e).resolveInner(n,-1),i=be(e.doc,r);return r.name==`Identifier`||r.name==`QuotedIdentifier`||r.name==`Keyword`?{from:r.from,quoted:r.name==`QuotedIdentifier`?e.doc.sliceString(r.from,r.from+1):null,parents:W(e.doc,V(r)),aliases:i}:r.name==`.`?{from:n,quoted:null,parents:W(e.doc,r),aliases:i}:{from:n,quoted:null,parents:[],empty:!0,aliases:i}}var ye=new Set(`where group having order union intersect except all distinct limit offset fetch for`.split(` `));function be(e,t){let n;for(let e=t;!n;e=e.parent){if(!e)return null;e.name==`Statement`&&(n=e)}let r=null;for(let t=n.firstChild,i=!1,a=null;t;t=t.nextSibling){let n=t.name==`Keyword`?e.sliceString(t.from,t.to).toLowerCase():null,o=null;if(!i)i=n==`from`;else if(n==`as`&&a&&U(t.nextSibling))o=H(e,t.nextSibling);else if(n&&ye.has(n))break;else a&&U(t)&&(o=H(e,t));o&&(r||=Object.create(null),r[o]=ve(e,a)),a=/Identifier$/.test(t.name)?t:null}return r}function xe(e,t,n){return n.map(n=>({...n,label:n.label[0]==e?n.label:e+n.label+t,apply:void 0}))}var Se=/^\w*$/,Ce=/^[`'"\[]?\w*[`'"\]]?$/;function K(e){return e.self&&typeof e.self.label==`string`}var we=class e{constructor(e,t){this.idQuote=e,this.idCaseInsensitive=t,this.list=[],this.children=void 0}child(t){let n=this.children||=Object.create(null);return n[t]||(t&&!this.list.some(e=>e.label==t)&&this.list.push(q(t,`type`,this.idQuote,this.idCaseInsensitive)),n[t]=new e(this.idQuote,this.idCaseInsensitive))}maybeChild(e){return this.children?this.children[e]:null}addCompletion(e){let t=this.list.findIndex(t=>t.label==e.label);t>-1?this.list[t]=e:this.list.push(e)}addCompletions(e){for(let t of e)this.addCompletion(typeof t==`string`?q(t,`property`,this.idQuote,this.idCaseInsensitive):t)}addNamespace(e){Array.isArray(e)?this.addCompletions(e):K(e)?this.addNamespace(e.children):this.addNamespaceObject(e)}addNamespaceObject(e){for(let t of Object.keys(e)){let n=e[t],r=null,i=t.replace(/\\?\./g,e=>e==`.`?`\0`:e).split(`\0`),a=this;K(n)&&(r=n.self,n=n.children);for(let e=0;e<i.length;e++)r&&e==i.length-1&&a.addCompletion(r),a=a.child(i[e].replace(/\\\./g,`.`));a.addNamespace(n)}}};function q(e,t,n,r){return RegExp(`^[a-z_][a-z_\\d]*$`,r?`i`:``).test(e)?{label:e,type:t}:{label:e,type:t,apply:n+e+J(n)}}function J(e){return e===`[`?`]`:e}function Te(e,t,n,r,i,a){let o=new we(a?.spec.identifierQuotes?.[0]||`"`,!!a?.spec.caseInsensitiveIdentifiers),s=i?o.child(i):null;return o.addNamespace(e),t&&(s||o).addCompletions(t),n&&o.addCompletions(n),s&&o.addCompletions(s.list),r&&o.addCompletions((s||o).child(r).list),e=>{let{parents:t,from:n,quoted:i,empty:a,aliases:c}=G(e.state,e.pos);if(a&&!e.explicit)return null;c&&t.length==1&&(t=c[t[0]]||t);let l=o;for(let e of t){for(;!l.children||!l.children[e];)if(l==o&&s)l=s;else if(l==s&&r)l=l.child(r);else return null;let t=l.maybeChild(e);if(!t)return null;l=t}let u=l.list;if(l==o&&c&&(u=u.concat(Object.keys(c).map(e=>({label:e,type:`constant`})))),i){let t=i[0],r=J(t);return{from:n,to:e.state.sliceDoc(e.pos,e.pos+1)==r?e.pos+1:void 0,options:xe(t,r,u),validFor:Ce}}return{from:n,options:u,validFor:Se}}}function Ee(e){return e==T?`type`:e==w?`keyword`:`variable`}function De(e,t,n){let r=Object.keys(e).map(r=>n(t?r.toUpperCase():r,Ee(e[r])));return c([`QuotedIdentifier`,`String`,`LineComment`,`BlockComment`,`.`],o(r))}var Oe=_e.configure({props:[r.add({Statement:n()}),a.add({Statement(e,t){return{from:Math.min(e.from+100,t.doc.lineAt(e.from).to),to:e.to}},BlockComment(e){return{from:e.from+2,to:e.to-2}}}),f({Keyword:p.keyword,Type:p.typeName,Builtin:p.standard(p.name),Bits:p.number,Bytes:p.string,Bool:p.bool,Null:p.null,Number:p.number,String:p.string,Identifier:p.name,QuotedIdentifier:p.special(p.string),SpecialVar:p.special(p.name),LineComment:p.lineComment,BlockComment:p.blockComment,Operator:p.operator,"Semi Punctuation":p.punctuation,"( )":p.paren,"{ }":p.brace,"[ ]":p.squareBracket})]}),Y=class e{constructor(e,t,n){this.dialect=e,this.language=t,this.spec=n}get extension(){return this.language.extension}configureLanguage(t,n){return new e(this.dialect,this.language.configure(t,n),this.spec)}static define(t){let n=ge(t,t.keywords,t.types,t.builtin),r=i.define({name:`sql`,parser:Oe.configure({tokenizers:[{from:B,to:z(n)}]}),languageData:{commentTokens:{line:`--`,block:{open:`/*`,close:`*/`}},closeBrackets:{brackets:[`(`,`[`,`{`,`'`,`"`,"`"]}}});return new e(n,r,t)}};function ke(e,t){return{label:e,type:t,boost:-1}}function Ae(e,t=!1,n){return De(e.dialect.words,t,n||ke)}function je(e){return e.schema?Te(e.schema,e.tables,e.schemas,e.defaultTable,e.defaultSchema,e.dialect||X):()=>null}function Me(e){return e.schema?(e.dialect||X).language.data.of({autocomplete:je(e)}):[]}function Ne(e={}){let t=e.dialect||X;return new d(t.language,[Me(e),t.language.data.of({autocomplete:Ae(t,e.upperCaseKeywords,e.keywordCompletion)})])}var X=Y.define({}),Z=e(ee(),1),Pe=`# Record
rowtime([alias]) -> BIGINT | event time in epoch milliseconds: the timestamp column's value, else the record's own time
rowkey([alias]) -> BYTES | the record's key as it is
rowmeta([alias]) -> STRUCT | where the record lies: topic, partition, offset, and timestamp_type (Kafka: 0 the producer's time, 1 the broker's); of files also file, of Kinesis shard and sequence_number
rowheaders([alias]) -> MAP<VARCHAR, BYTES> | the headers of a Kafka record, of several with one name the last; NULL if there are none

# Text
ascii(text), char_to_ascii -> INTEGER | code of the first character
  ascii('A') => 65
base64(bytes), to_base64 -> VARCHAR | bytes, or the bytes of a text, as base64 text
  to_base64('leat') => "bGVhdA=="
bit_length(text) -> INTEGER | bits of a text in UTF-8
  bit_length('é') => 16
btrim(text[, characters]) -> VARCHAR | without the blanks, or these characters, at both ends
  btrim('xxaxx', 'x') => "a"
chr(code), char -> VARCHAR | the character of a code
  chr(65) => "A"
char_length(text), character_length, len, length -> INTEGER | number of characters; of BYTES the number of bytes
  char_length('leät') => 4
concat(value, …) -> VARCHAR | texts, or arrays, put together; NULL if one is
  concat('a', 'b', 'c') => "abc"
concat_ws(separator, …) -> VARCHAR | texts put together with a separator; NULLs are left out
  concat_ws('-', 'a', NULL, 'b') => "a-b"
contains(text, part) -> BOOLEAN | whether the part is in the text
  contains('leat', 'ea') => true
decode(bytes, charset) -> VARCHAR | bytes as text of a character set such as 'UTF-8'
  decode(X'6C656174', 'UTF-8') => "leat"
elt(n, text, …) -> VARCHAR | the n-th of the texts
  elt(2, 'a', 'b') => "b"
encode(text, charset) -> BYTES | a text's bytes in a character set
  encode('leat', 'UTF-8') => "bGVhdA=="
endswith(text, part) -> BOOLEAN | whether the text ends so
  endswith('leat', 'at') => true
find_in_set(text, list) -> INTEGER | place of a text in a comma-separated list, 0 if it is not there
  find_in_set('b', 'a,b,c') => 2
format_number(number, digits) -> VARCHAR | a number with thousands parted and so many decimal places
  format_number(12345.678, 2) => "12,345.68"
format_string(format, …), printf -> VARCHAR | values in a format as C's printf has it
  printf('%s=%d', 'n', 7) => "n=7"
from_base64(text) -> VARCHAR | the text behind base64 text
  spark: CAST(unbase64({1}) AS STRING)
  from_base64('bGVhdA==') => "leat"
initcap(text) -> VARCHAR | each word with a capital
  initcap('leat streams') => "Leat Streams"
instr(text, part) -> INTEGER | first place of the part from 1, 0 if it is not there
  instr('leat', 'at') => 3
is_alpha(text) -> BOOLEAN | whether there are letters only, and one at least; false for NULL
  spark: coalesce({1} RLIKE '\\\\A\\\\p{L}+\\\\z', false)
  is_alpha('leat') => true
is_decimal(text) -> BOOLEAN | whether the text is a number; false for NULL
  spark: coalesce({1} RLIKE '\\\\A[+-]?([0-9]+(\\\\.[0-9]*)?|\\\\.[0-9]+)([eE][+-]?[0-9]+)?\\\\z', false)
  is_decimal('-1.5') => true
is_digit(text) -> BOOLEAN | whether there are digits only, and one at least; false for NULL
  spark: coalesce({1} RLIKE '\\\\A\\\\p{Nd}+\\\\z', false)
  is_digit('1.5') => false
lower(text), lcase -> VARCHAR | in small letters
  lower('LEAT') => "leat"
left(text, n) -> VARCHAR | the first n characters
  left('leat', 2) => "le"
levenshtein(a, b) -> INTEGER | how many letters must change to make one text of the other
  levenshtein('leat', 'leet') => 1
locate(part, text[, from]) -> INTEGER | first place of the part, from 1, 0 if it is not there
  locate('a', 'leat') => 3
lpad(text, length[, filler]) -> VARCHAR | filled up, or cut, to a length on the left
  lpad('7', 3, '0') => "007"
ltrim(text[, characters]) -> VARCHAR | without the blanks on the left
  ltrim('  leat') => "leat"
luhn_check(text) -> BOOLEAN | whether the digits have a valid Luhn check digit
  luhn_check('79927398713') => true
mask(text[, upper[, lower[, digit[, other]]]]) -> VARCHAR | letters and digits replaced by X, x and n
  mask('AbCD123-@$#') => "XxXXnnn-@$#"
octet_length(text) -> INTEGER | bytes of a text in UTF-8
  octet_length('é') => 2
overlay(text, part, place[, length]) -> VARCHAR | the text with a stretch replaced; also OVERLAY(text PLACING part FROM place [FOR length])
  OVERLAY('leat' PLACING 'af' FROM 3 FOR 2) => "leaf"
parse_url(url, what[, key]) -> VARCHAR | a part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY, USERINFO
  parse_url('https://leat.io/a?k=v', 'QUERY', 'k') => "v"
position(part, text[, from]) -> INTEGER | as locate; also POSITION(part IN text)
  POSITION('a' IN 'leat') => 3
regexp_count(text, pattern) -> INTEGER | how often a regular expression matches
  regexp_count('abab', 'b') => 2
regexp_extract(text, pattern[, group]) -> VARCHAR | the first match, or a group of it; '' if there is none
  spark[2]: regexp_extract({1}, {2}, 0)
  regexp_extract('order-17', '([a-z]+)-([0-9]+)', 2) => "17"
regexp_extract_all(text, pattern[, group]) -> ARRAY<VARCHAR> | every match, or a group of each
  spark[2]: regexp_extract_all({1}, {2}, 0)
  regexp_extract_all('a1b2', '[0-9]') => ["1", "2"]
regexp_instr(text, pattern) -> INTEGER | place of the first match, 0 if there is none
  regexp_instr('leat', 'a') => 3
regexp_like(text, pattern), regexp -> BOOLEAN | whether a regular expression matches somewhere
  regexp('leat', 'e.t') => true
regexp_replace(text, pattern, replacement[, from]) -> VARCHAR | every match replaced
  regexp_replace('a1b2', '[0-9]', '#') => "a#b#"
regexp_substr(text, pattern) -> VARCHAR | the first match, NULL if there is none
  regexp_substr('leat', '[aeiou]+') => "ea"
repeat(text, n) -> VARCHAR | the text n times
  repeat('ab', 2) => "abab"
replace(text, part[, replacement]) -> VARCHAR | every part replaced, or left out
  replace('leat', 'l', 'b') => "beat"
reverse(value), array_reverse -> VARCHAR | a text or an array from its end
  reverse('leat') => "tael"
right(text, n) -> VARCHAR | the last n characters
  right('leat', 2) => "at"
rpad(text, length[, filler]) -> VARCHAR | filled up, or cut, to a length on the right
  rpad('7', 3, '0') => "700"
rtrim(text[, characters]) -> VARCHAR | without the blanks on the right
  rtrim('leat  ') => "leat"
soundex(text) -> VARCHAR | how a word sounds in English, as a letter and digits
  soundex('Robert') => "R163"
space(n) -> VARCHAR | n blanks
  space(2) => "  "
split(text, pattern[, limit]) -> ARRAY<VARCHAR> | the parts between the matches of a regular expression
  split('a-b-c', '-') => ["a", "b", "c"]
split_index(text, separator, index) -> VARCHAR | the part of this index, counted from 0; NULL if there is none
  spark: try_element_at(split({1}, concat('\\\\Q', {2}, '\\\\E'), -1), ({3}) + 1)
  split_index('a|b|c', '|', 1) => "b"
  split_index('a|b|c', '|', -1) => null
split_part(text, separator, n) -> VARCHAR | the n-th part, counted from 1, from the end if negative; '' past the end
  split_part('a|b|c', '|', -1) => "c"
startswith(text, part) -> BOOLEAN | whether the text starts so
  startswith('leat', 'le') => true
str_to_map(text[, pairs[, pair]]) -> MAP<VARCHAR, VARCHAR> | pairs parted by ',' and each by '=', or by other regular expressions
  spark[1]: str_to_map({1}, ',', '=')
  spark[2]: str_to_map({1}, {2}, '=')
  str_to_map('a=1,b=2') => {"a": "1", "b": "2"}
substring(text, start[, length]), substr -> VARCHAR | a stretch from a place, counted from 1, or from the end if negative; also SUBSTRING(text FROM start FOR length)
  SUBSTRING('leat' FROM 2 FOR 2) => "ea"
substring_index(text, separator, n) -> VARCHAR | what is before the n-th separator, behind it if negative
  substring_index('a.b.c', '.', 2) => "a.b"
translate(text, from, to), translate3 -> VARCHAR | each character of one list replaced by that of the other
  translate('leat', 'lt', 'bd') => "bead"
trim(text[, characters]) -> VARCHAR | without the blanks at both ends; also TRIM(LEADING|TRAILING|BOTH characters FROM text)
  TRIM(LEADING 'x' FROM 'xxax') => "ax"
upper(text), ucase -> VARCHAR | in capitals
  upper('leat') => "LEAT"
unbase64(text) -> BYTES | the bytes behind base64 text
  unbase64('bGVhdA==') => "bGVhdA=="
url_decode(text) -> VARCHAR | percent-encoding undone
  url_decode('a%20b') => "a b"
url_encode(text) -> VARCHAR | percent-encoded, as forms do
  url_encode('a b&c') => "a+b%26c"

# Numbers
abs(number) -> NUMBER | without its sign
  abs(-7) => 7
acos(x) -> DOUBLE | arc cosine
  acos(1) => 0.0
acosh(x) -> DOUBLE | inverse hyperbolic cosine
  acosh(1) => 0.0
asin(x) -> DOUBLE | arc sine
  asin(0) => 0.0
asinh(x) -> DOUBLE | inverse hyperbolic sine
  asinh(0) => 0.0
atan(x) -> DOUBLE | arc tangent
  atan(0) => 0.0
atan2(y, x) -> DOUBLE | angle of a point
  atan2(0, 1) => 0.0
atanh(x) -> DOUBLE | inverse hyperbolic tangent
  atanh(0) => 0.0
bin(number) -> VARCHAR | a whole number in binary
  bin(10) => "1010"
bit_count(number) -> INTEGER | how many bits are set
  bit_count(7) => 3
bround(number[, digits]) -> NUMBER | rounded, halves to the even neighbour
  bround(2.5, 0) => 2
cbrt(x) -> DOUBLE | cube root
  cbrt(27) => 3.0
ceil(number[, digits]), ceiling -> NUMBER | rounded up; of a moment: CEIL(time TO unit)
  ceil(1.2) => 2
conv(text, from, to) -> VARCHAR | a number from one base to another
  conv('ff', 16, 10) => "255"
cos(x) -> DOUBLE | cosine
  cos(0) => 1.0
cosh(x) -> DOUBLE | hyperbolic cosine
  cosh(0) => 1.0
cot(x) -> DOUBLE | cotangent
  round(cot(1), 6) => 0.642093
csc(x) -> DOUBLE | cosecant
  round(csc(1), 6) => 1.188395
degrees(x) -> DOUBLE | radians as degrees
  degrees(pi()) => 180.0
e() -> DOUBLE | Euler's number
  round(e(), 6) => 2.718282
exp(x) -> DOUBLE | e to the power of x
  exp(0) => 1.0
expm1(x) -> DOUBLE | exp(x) - 1, exact near 0
  expm1(0) => 0.0
factorial(n) -> BIGINT | n!, for 0 to 20
  factorial(5) => 120
floor(number[, digits]) -> NUMBER | rounded down; of a moment: FLOOR(time TO unit)
  floor(1.8) => 1
getbit(number, place) -> TINYINT | one bit, counted from 0
  getbit(5, 2) => 1
greatest(a, b, …) -> ANY | the greatest; NULLs are passed over
  greatest(1, 3, 2) => 3
hypot(a, b) -> DOUBLE | square root of a² + b²
  hypot(3, 4) => 5.0
isnan(x) -> BOOLEAN | whether it is NaN
  isnan(CAST('NaN' AS DOUBLE)) => true
least(a, b, …) -> ANY | the least; NULLs are passed over
  least(1, 3, 2) => 1
ln(x) -> DOUBLE | natural logarithm; NULL unless x > 0
  ln(1) => 0.0
log([base, ]x) -> DOUBLE | logarithm, natural without a base
  log(2, 8) => 3.0
log10(x) -> DOUBLE | logarithm to base 10
  log10(1000) => 3.0
log1p(x) -> DOUBLE | ln(1 + x), exact near 0
  log1p(0) => 0.0
log2(x) -> DOUBLE | logarithm to base 2
  log2(8) => 3.0
mod(a, b) -> NUMBER | remainder, with the sign of a; fails for b = 0
  mod(-7, 3) => -1
nanvl(a, b) -> DOUBLE | b if a is NaN
  nanvl(CAST('NaN' AS DOUBLE), 1.5) => 1.5
negative(number) -> NUMBER | with the other sign
  negative(7) => -7
pi() -> DOUBLE | the circle's number
  round(pi(), 6) => 3.141593
pmod(a, b) -> NUMBER | remainder that is not negative for b > 0
  pmod(-7, 3) => 2
positive(number) -> NUMBER | the number itself
  positive(7) => 7
power(x, y), pow -> DOUBLE | x to the power of y
  power(2, 10) => 1024.0
radians(x) -> DOUBLE | degrees as radians
  round(radians(180), 6) => 3.141593
rand([seed]), random -> DOUBLE | a random number from 0 up to 1
  rand() < 1 => true
rand_integer([seed, ]bound) -> INTEGER | a random whole number from 0 up to a bound
  spark[1]: CAST(floor(rand() * ({1})) AS INT)
  spark[2]: CAST(floor(rand({1}) * ({2})) AS INT)
  rand_integer(1) => 0
rint(x) -> DOUBLE | the nearest whole number
  rint(1.6) => 2.0
round(number[, digits]) -> NUMBER | rounded, halves away from 0
  round(2.345, 2) => 2.35
sec(x) -> DOUBLE | secant
  sec(0) => 1.0
shiftleft(number, bits) -> NUMBER | bits moved up
  shiftleft(1, 4) => 16
shiftright(number, bits) -> NUMBER | bits moved down, the sign kept
  shiftright(-16, 2) => -4
shiftrightunsigned(number, bits) -> NUMBER | bits moved down, zeros moved in
  shiftrightunsigned(16, 2) => 4
sign(x), signum -> DOUBLE | -1, 0 or 1
  sign(-3.5) => -1.0
sin(x) -> DOUBLE | sine
  sin(0) => 0.0
sinh(x) -> DOUBLE | hyperbolic sine
  sinh(0) => 0.0
sqrt(x) -> DOUBLE | square root
  sqrt(16) => 4.0
tan(x) -> DOUBLE | tangent
  tan(0) => 0.0
tanh(x) -> DOUBLE | hyperbolic tangent
  tanh(0) => 0.0
truncate(number[, digits]) -> NUMBER | digits behind a place cut off, towards 0; the place is a constant
  spark[1]: (CASE WHEN {1} < 0 THEN ceil({1}) ELSE floor({1}) END)
  spark[2]: (CASE WHEN {1} < 0 THEN ceil({1}, {2}) ELSE floor({1}, {2}) END)
  truncate(-2.349, 2) => -2.34
try_add(a, b) -> NUMBER | a + b, NULL on overflow
  try_add(1, 2) => 3
try_divide(a, b) -> NUMBER | a / b with its type, NULL for b = 0
  try_divide(1, 0) => null
try_mod(a, b) -> NUMBER | remainder, NULL for b = 0
  try_mod(7, 0) => null
try_multiply(a, b) -> NUMBER | a * b, NULL on overflow
  try_multiply(2, 3) => 6
try_subtract(a, b) -> NUMBER | a - b, NULL on overflow
  try_subtract(3, 1) => 2
uuid() -> VARCHAR | a random UUID, another one for each row
  char_length(uuid()) => 36
width_bucket(x, low, high, n) -> BIGINT | which of n equal ranges from low to high holds x
  width_bucket(5.3, 0, 10, 5) => 3

# Time
add_months(date, n) -> DATE | the date n months later
  add_months(DATE '2026-01-31', 1) => "2026-02-28"
convert_timezone([from, ]to, time) -> TIMESTAMP | a TIMESTAMP of one time zone as another one shows it
  convert_timezone('UTC', 'Europe/Berlin', TIMESTAMP '2026-01-01 12:00:00') => "2026-01-01 13:00:00"
convert_tz(text, from, to) -> VARCHAR | a time yyyy-MM-dd HH:mm:ss of one time zone as another one shows it
  spark: date_format(convert_timezone({2}, {3}, to_timestamp_ntz({1})), 'yyyy-MM-dd HH:mm:ss')
  convert_tz('2026-01-01 12:00:00', 'UTC', 'America/New_York') => "2026-01-01 07:00:00"
current_date() -> DATE | today in UTC; also without parentheses
  current_date() > DATE '2026-01-01' => true
current_time() -> TIME | time of day in UTC; also without parentheses
  spark: date_format(current_timestamp(), 'HH:mm:ss')
  char_length(current_time) => 8
current_timestamp(), current_row_timestamp, now, proctime -> TIMESTAMP_LTZ | the moment at which the batch started; current_timestamp also without parentheses
  CURRENT_TIMESTAMP > TIMESTAMP_LTZ '2026-01-01 00:00:00' => true
to_date(text[, format]), date -> DATE | a text yyyy-MM-dd, or another format, as a date
  to_date('21.11.2026', 'dd.MM.yyyy') => "2026-11-21"
date_add(date, days), dateadd -> DATE | the date so many days later
  date_add(DATE '2026-02-28', 1) => "2026-03-01"
date_diff(end, start), datediff -> INTEGER | days between two dates
  datediff(DATE '2026-03-01', DATE '2026-02-01') => 28
date_format(time, format) -> VARCHAR | a time in a format such as 'yyyy-MM-dd HH:mm'
  date_format(TIMESTAMP '2026-11-21 12:30:00', 'dd.MM.yyyy HH:mm') => "21.11.2026 12:30"
date_from_unix_date(days) -> DATE | days since 1970-01-01 as a date
  date_from_unix_date(1) => "1970-01-02"
date_part(field, time) -> INTEGER | a field such as 'YEAR', as EXTRACT
  date_part('MONTH', DATE '2026-11-21') => 11
date_sub(date, days) -> DATE | the date so many days before
  date_sub(DATE '2026-03-01', 1) => "2026-02-28"
date_trunc(unit, time) -> TIMESTAMP_LTZ | the start of a unit such as 'HOUR'
  date_trunc('HOUR', TIMESTAMP_LTZ '2026-11-21 12:34:56') => "2026-11-21 12:00:00Z"
day(date), dayofmonth -> INTEGER | day of the month
  day(DATE '2026-11-21') => 21
dayname(date) -> VARCHAR | Mon, Tue, …
  dayname(DATE '2026-11-21') => "Sat"
dayofweek(date) -> INTEGER | 1 for Sunday to 7
  dayofweek(DATE '2026-11-21') => 7
dayofyear(date) -> INTEGER | 1 to 366
  dayofyear(DATE '2026-02-01') => 32
extract(field, time) -> INTEGER | EXTRACT(YEAR|QUARTER|MONTH|WEEK|DAY|DOY|DOW|HOUR|MINUTE|SECOND FROM time)
  EXTRACT(HOUR FROM TIMESTAMP '2026-11-21 12:34:56') => 12
from_unixtime(seconds[, format]) -> VARCHAR | epoch seconds as text in UTC
  from_unixtime(0) => "1970-01-01 00:00:00"
from_utc_timestamp(time, zone) -> TIMESTAMP_LTZ | a time in UTC moved by a time zone's offset
  from_utc_timestamp(TIMESTAMP_LTZ '2026-01-01 12:00:00', 'Asia/Tokyo') => "2026-01-01 21:00:00Z"
hour(time) -> INTEGER | 0 to 23
  hour(TIMESTAMP '2026-11-21 12:34:56') => 12
last_day(date) -> DATE | last day of its month
  last_day(DATE '2026-02-01') => "2026-02-28"
localtime() -> TIME | as current_time; also without parentheses
  spark: date_format(current_timestamp(), 'HH:mm:ss')
  char_length(localtime()) => 8
localtimestamp() -> TIMESTAMP | date and time in UTC at which the batch started; also without parentheses
  LOCALTIMESTAMP > TIMESTAMP '2026-01-01 00:00:00' => true
make_date(year, month, day) -> DATE | a date of its parts
  make_date(2026, 11, 21) => "2026-11-21"
make_timestamp(year, month, day, hour, minute, second), make_timestamp_ntz -> TIMESTAMP | a time of its parts
  spark: make_timestamp_ntz
  make_timestamp(2026, 11, 21, 12, 30, 0.5) => "2026-11-21 12:30:00.5"
make_timestamp_ltz(year, month, day, hour, minute, second[, zone]) -> TIMESTAMP_LTZ | a moment of its parts, in UTC or a zone
  make_timestamp_ltz(2026, 11, 21, 12, 30, 0) => "2026-11-21 12:30:00Z"
minute(time) -> INTEGER | 0 to 59
  minute(TIMESTAMP '2026-11-21 12:34:56') => 34
month(date) -> INTEGER | 1 to 12
  month(DATE '2026-11-21') => 11
monthname(date) -> VARCHAR | Jan, Feb, …
  monthname(DATE '2026-11-21') => "Nov"
months_between(end, start[, rounded]) -> DOUBLE | months between two times
  months_between(DATE '2026-03-01', DATE '2026-01-01') => 2.0
next_day(date, weekday) -> DATE | the next such day, as 'MON'
  next_day(DATE '2026-11-21', 'MON') => "2026-11-23"
quarter(date) -> INTEGER | 1 to 4
  quarter(DATE '2026-11-21') => 4
second(time) -> INTEGER | 0 to 59
  second(TIMESTAMP '2026-11-21 12:34:56') => 56
timestamp_micros(number) -> TIMESTAMP_LTZ | epoch microseconds as a moment
  timestamp_micros(1500000) => "1970-01-01 00:00:01.5Z"
timestamp_millis(number) -> TIMESTAMP_LTZ | epoch milliseconds as a moment
  timestamp_millis(1500) => "1970-01-01 00:00:01.5Z"
timestamp_seconds(number) -> TIMESTAMP_LTZ | epoch seconds as a moment
  timestamp_seconds(1) => "1970-01-01 00:00:01Z"
timestampadd(unit, n, time) -> TIMESTAMP | the time n units later; the unit is a word, YEAR to MICROSECOND
  TIMESTAMPADD(HOUR, 2, TIMESTAMP '2026-11-21 12:00:00') => "2026-11-21 14:00:00"
timestampdiff(unit, start, end) -> BIGINT | whole units from start to end
  TIMESTAMPDIFF(MINUTE, TIMESTAMP '2026-11-21 12:00:00', TIMESTAMP '2026-11-21 13:30:00') => 90
to_timestamp(text[, format]), to_timestamp_ntz -> TIMESTAMP | a text as date and time without zone
  spark: to_timestamp_ntz
  to_timestamp('21.11.2026 12:30', 'dd.MM.yyyy HH:mm') => "2026-11-21 12:30:00"
to_timestamp_ltz(value[, how]) -> TIMESTAMP_LTZ | a number of epoch seconds (0), milliseconds (3) or microseconds (6), or a text in a format, as a moment
  to_timestamp_ltz(1500, 3) => "1970-01-01 00:00:01.5Z"
to_unix_timestamp(time[, format]) -> BIGINT | a time, or a text in a format, as epoch seconds
  to_unix_timestamp(TIMESTAMP_LTZ '1970-01-02 00:00:00') => 86400
to_utc_timestamp(time, zone) -> TIMESTAMP_LTZ | a time of a time zone moved to UTC
  to_utc_timestamp(TIMESTAMP_LTZ '2026-01-01 12:00:00', 'Asia/Tokyo') => "2026-01-01 03:00:00Z"
trunc(date, unit) -> DATE | the first day of a unit such as 'MONTH'
  trunc(DATE '2026-11-21', 'MONTH') => "2026-11-01"
try_to_timestamp(text[, format]) -> TIMESTAMP_LTZ | a text as a moment, NULL if it is none
  try_to_timestamp('never') => null
unix_date(date) -> INTEGER | days since 1970-01-01
  unix_date(DATE '1970-01-02') => 1
unix_micros(time) -> BIGINT | a moment as epoch microseconds
  unix_micros(TIMESTAMP_LTZ '1970-01-01 00:00:01') => 1000000
unix_millis(time) -> BIGINT | a moment as epoch milliseconds
  unix_millis(TIMESTAMP_LTZ '1970-01-01 00:00:01') => 1000
unix_seconds(time) -> BIGINT | a moment as epoch seconds
  unix_seconds(TIMESTAMP_LTZ '1970-01-01 00:00:01') => 1
unix_timestamp([text[, format]]) -> BIGINT | now, or a time or text, as epoch seconds
  unix_timestamp('1970-01-02', 'yyyy-MM-dd') => 86400
weekofyear(date), week -> INTEGER | ISO week, 1 to 53
  week(DATE '2026-11-21') => 47
weekday(date) -> INTEGER | 0 for Monday to 6
  weekday(DATE '2026-11-21') => 5
year(date) -> INTEGER | the year
  year(DATE '2026-11-21') => 2026

# Conditions and types
coalesce(value, …) -> ANY | the first that is not NULL
  coalesce(NULL, 'a', 'b') => "a"
equal_null(a, b) -> BOOLEAN | whether both are equal, or both NULL
  equal_null(NULL, NULL) => true
if(condition, yes, no) -> ANY | one of two values
  if(1 < 2, 'a', 'b') => "a"
ifnull(a, b), nvl -> ANY | b if a is NULL
  ifnull(NULL, 1) => 1
isnotnull(value) -> BOOLEAN | as IS NOT NULL
  isnotnull(1) => true
isnull(value) -> BOOLEAN | as IS NULL
  isnull(1) => false
nullif(a, b) -> ANY | NULL if both are equal, else a
  nullif(1, 1) => null
nullifzero(number) -> NUMBER | NULL for 0
  nullifzero(0) => null
nvl2(a, b, c) -> ANY | b if a is not NULL, else c
  nvl2(NULL, 1, 2) => 2
to_binary(text[, format]) -> BYTES | text in 'hex', 'utf-8' or 'base64' as bytes
  to_binary('6C65', 'hex') => "bGU="
to_char(value, format) -> VARCHAR | a number, time or bytes in a format
  to_char(1234.5, '9,999.99') => "1,234.50"
to_number(text, format) -> DECIMAL | a text in a format as a number; fails if it is none
  to_number('1,234.5', '9,999.9') => 1234.5
try_to_binary(text[, format]) -> BYTES | as to_binary, NULL if it cannot be read
  try_to_binary('zz', 'hex') => null
try_to_number(text, format) -> DECIMAL | as to_number, NULL if it is none
  try_to_number('x', '999') => null
typeof(value) -> VARCHAR | the engine's name of the value's type
  typeof(1.5) => "decimal(2,1)"
zeroifnull(number) -> NUMBER | 0 for NULL
  zeroifnull(CAST(NULL AS INTEGER)) => 0

# JSON
from_json(text, schema) -> STRUCT | JSON text as a value of a type, the schema given as text
  from_json('{"a": 1}', 'a INT') => {"a": 1}
get_json_object(text, path), json_query, json_value -> VARCHAR | what a path such as '$.a."b.c"[0]' leads to: the text itself, others as they stand; NULL if there is nothing
  json_value('{"a": {"b": 7}}', '$.a.b') => "7"
  json_value('{"a.b": 19.90}', '$."a.b"') => "19.90"
  json_query('{"a": [{"b": 1.50}, 1e3]}', '$[''a''][0]') => "{\\"b\\": 1.50}"
json_array(…) -> VARCHAR | a JSON array; NULLs are left out
  json_array(1, 'a', NULL) => "[1,\\"a\\"]"
json_array_length(text) -> INTEGER | elements of a JSON array; NULL if it is none
  json_array_length('[1, 2, 3]') => 3
json_exists(text, path) -> BOOLEAN | whether a path leads to something that is not null
  spark: (get_json_object({1}, {2}) IS NOT NULL)
  json_exists('{"a": 1}', '$.b') => false
json_object(name, value, …) -> VARCHAR | a JSON object; also JSON_OBJECT(KEY 'name' VALUE value, …)
  json_object(KEY 'a' VALUE 1, KEY 'b' VALUE NULL) => "{\\"a\\":1,\\"b\\":null}"
json_object_keys(text) -> ARRAY<VARCHAR> | names of a JSON object's members
  json_object_keys('{"a": 1, "b": 2}') => ["a", "b"]
json_quote(text) -> VARCHAR | a text as a JSON string
  spark: (CASE WHEN {1} IS NOT NULL THEN substring(to_json(array({1})), 2, char_length(to_json(array({1}))) - 2) END)
  json_quote('say "hi"') => "\\"say \\\\\\"hi\\\\\\"\\""
json_string(value) -> VARCHAR | any value as JSON
  spark: (CASE WHEN {1} IS NOT NULL THEN substring(to_json(array({1})), 2, char_length(to_json(array({1}))) - 2) END)
  json_string(ARRAY[1, 2]) => "[1,2]"
json_unquote(text) -> VARCHAR | the text of a JSON string
  spark: get_json_object(concat('[', {1}, ']'), '\\u0024[0]')
  json_unquote('"a\\"b"') => "a\\"b"
to_json(value) -> VARCHAR | a STRUCT, ARRAY or MAP as JSON; members that are NULL are left out
  to_json(MAP['a', 1]) => "{\\"a\\":1}"

# Arrays, maps and structs
array(…) -> ARRAY | an array; also ARRAY[…]
  ARRAY[1, 2] => [1, 2]
array_append(array, value) -> ARRAY | with one more at the end
  array_append(ARRAY[1], 2) => [1, 2]
array_compact(array) -> ARRAY | without NULLs
  array_compact(ARRAY[1, NULL]) => [1]
array_concat(array, …) -> ARRAY | arrays put together
  spark: concat
  array_concat(ARRAY[1], ARRAY[2, 3]) => [1, 2, 3]
array_contains(array, value) -> BOOLEAN | whether it is in it
  array_contains(ARRAY[1, 2], 2) => true
array_distinct(array) -> ARRAY | each value once
  array_distinct(ARRAY[1, 1, 2]) => [1, 2]
array_except(a, b) -> ARRAY | what is in a and not in b, each once
  array_except(ARRAY[1, 2], ARRAY[2]) => [1]
array_insert(array, place, value) -> ARRAY | with one more at a place, counted from 1
  array_insert(ARRAY[1, 3], 2, 2) => [1, 2, 3]
array_intersect(a, b) -> ARRAY | what is in both, each once
  array_intersect(ARRAY[1, 2], ARRAY[2, 3]) => [2]
array_join(array, separator[, null]) -> VARCHAR | texts put together; NULLs are left out or written so
  array_join(ARRAY['a', NULL, 'b'], '-') => "a-b"
array_max(array) -> ANY | the greatest
  array_max(ARRAY[1, 3, 2]) => 3
array_min(array) -> ANY | the least
  array_min(ARRAY[3, 1, 2]) => 1
array_position(array, value) -> BIGINT | first place from 1, 0 if it is not there
  array_position(ARRAY['a', 'b'], 'b') => 2
array_prepend(array, value) -> ARRAY | with one more at the start
  array_prepend(ARRAY[2], 1) => [1, 2]
array_remove(array, value) -> ARRAY | without the equal ones
  array_remove(ARRAY[1, 2, 1], 1) => [2]
array_repeat(value, n) -> ARRAY | a value n times
  array_repeat('a', 2) => ["a", "a"]
array_size(array) -> INTEGER | how many; NULL for NULL
  array_size(ARRAY[1, 2]) => 2
array_slice(array, start[, end]) -> ARRAY | from a place to a place, both included, counted from 1, or from the end if negative
  spark[2]: slice({1}, CASE WHEN ({2}) < 0 THEN greatest(array_size({1}) + ({2}) + 1, 1) ELSE greatest({2}, 1) END, array_size({1}))
  spark[3]: slice({1}, CASE WHEN ({2}) < 0 THEN greatest(array_size({1}) + ({2}) + 1, 1) ELSE greatest({2}, 1) END, greatest(CASE WHEN ({3}) < 0 THEN array_size({1}) + ({3}) + 1 ELSE {3} END - CASE WHEN ({2}) < 0 THEN greatest(array_size({1}) + ({2}) + 1, 1) ELSE greatest({2}, 1) END + 1, 0))
  array_slice(ARRAY[1, 2, 3, 4], 2, -2) => [2, 3]
array_sort(array) -> ARRAY | in order, NULLs last
  array_sort(ARRAY[2, NULL, 1]) => [1, 2, null]
array_union(a, b) -> ARRAY | what is in one of them, each once
  array_union(ARRAY[1, 2], ARRAY[2, 3]) => [1, 2, 3]
arrays_overlap(a, b) -> BOOLEAN | whether something is in both
  arrays_overlap(ARRAY[1, 2], ARRAY[2, 3]) => true
arrays_zip(array, …) -> ARRAY<STRUCT> | the n-th elements as a struct each
  array_size(arrays_zip(ARRAY[1, 2], ARRAY['a', 'b'])) => 2
cardinality(value), size -> INTEGER | how many elements or pairs
  cardinality(MAP['a', 1]) => 1
element(array) -> ANY | the only element; NULL if empty, fails if there are more
  spark: (CASE WHEN array_size({1}) > 1 THEN raise_error('ELEMENT was given an array of more than one element.') ELSE try_element_at({1}, 1) END)
  element(ARRAY['a']) => "a"
element_at(value, key) -> ANY | an array's element from 1, or from the end if negative, or a map's value; fails past an array's end
  element_at(ARRAY['a', 'b'], -1) => "b"
flatten(array) -> ARRAY | an array of arrays as one array
  flatten(ARRAY[ARRAY[1], ARRAY[2, 3]]) => [1, 2, 3]
get(array, index) -> ANY | an array's element from 0; NULL past the end
  get(ARRAY['a', 'b'], 1) => "b"
map(…) -> MAP | a map; also MAP[…]
  MAP['a', 1, 'b', 2] => {"a": 1, "b": 2}
map_concat(map, …) -> MAP | maps put together; a key may be in one only
  map_concat(MAP['a', 1], MAP['b', 2]) => {"a": 1, "b": 2}
map_contains_key(map, key) -> BOOLEAN | whether there is such a key
  map_contains_key(MAP['a', 1], 'b') => false
map_entries(map) -> ARRAY<STRUCT> | the pairs as structs key, value
  map_entries(MAP['a', 1]) => [{"key": "a", "value": 1}]
map_from_arrays(keys, values) -> MAP | a map of two arrays
  map_from_arrays(ARRAY['a', 'b'], ARRAY[1, 2]) => {"a": 1, "b": 2}
map_from_entries(array) -> MAP | a map of an array of structs
  map_from_entries(ARRAY[struct('a', 1)]) => {"a": 1}
map_keys(map) -> ARRAY | the keys
  map_keys(MAP['a', 1]) => ["a"]
map_union(a, b) -> MAP | both maps; of a key in both the value of b
  spark: map_concat(map_filter({1}, (\`k\`, \`v\`) -> NOT map_contains_key({2}, \`k\`)), {2})
  map_union(MAP['a', 1, 'b', 1], MAP['b', 2]) => {"a": 1, "b": 2}
map_values(map) -> ARRAY | the values
  map_values(MAP['a', 1]) => [1]
named_struct(name, value, …) -> STRUCT | a struct of named fields
  named_struct('a', 1, 'b', 'x') => {"a": 1, "b": "x"}
sequence(from, to[, step]) -> ARRAY | an array of numbers or times in steps
  sequence(1, 5, 2) => [1, 3, 5]
shuffle(array) -> ARRAY | in random order
  array_size(shuffle(ARRAY[1, 2])) => 2
slice(array, start, length) -> ARRAY | a stretch, from 1, or from the end if negative
  slice(ARRAY[1, 2, 3], 2, 2) => [2, 3]
sort_array(array[, ascending]) -> ARRAY | in order, NULLs first
  sort_array(ARRAY[1, 3, 2], FALSE) => [3, 2, 1]
struct(value, …), row -> STRUCT | a struct; columns keep their names, others are col1, col2, …
  row(1, 'x') => {"col1": 1, "col2": "x"}
try_element_at(value, key) -> ANY | as element_at, NULL past an array's end
  try_element_at(ARRAY['a'], 3) => null

# Hashes
crc32(bytes) -> BIGINT | CRC-32 check sum
  crc32('leat') => 891711919
hash(value, …) -> INTEGER | Murmur3 hash
  hash('leat') => 716854484
hex(value) -> VARCHAR | a whole number, text or bytes in hexadecimal
  hex(255) => "FF"
md5(bytes) -> VARCHAR | MD5 in hexadecimal
  md5('leat') => "6fb704a4a9f373d813d50ac3dc4ecc63"
sha(bytes), sha1 -> VARCHAR | SHA-1 in hexadecimal
  sha1('leat') => "10ed7068dc38755ae1d138bccc541bbaebab9b39"
sha2(bytes, bits) -> VARCHAR | SHA-2 of 224, 256, 384 or 512 bits in hexadecimal
  sha2('leat', 256) => "2ac0a581e808c879ae5b75b9e0b5b57ce94b67346e33e286e8aa7a3f2d97632e"
sha224(bytes) -> VARCHAR | SHA-224 in hexadecimal
  spark: sha2({1}, 224)
  sha224('leat') => "e92a1e16c6f3d618b46c9f4078946880a5b773b6dcbf5490ffa20560"
sha256(bytes) -> VARCHAR | SHA-256 in hexadecimal
  spark: sha2({1}, 256)
  sha256('leat') => "2ac0a581e808c879ae5b75b9e0b5b57ce94b67346e33e286e8aa7a3f2d97632e"
sha384(bytes) -> VARCHAR | SHA-384 in hexadecimal
  spark: sha2({1}, 384)
  left(sha384('leat'), 16) => "7effc43d9e4952f4"
sha512(bytes) -> VARCHAR | SHA-512 in hexadecimal
  spark: sha2({1}, 512)
  left(sha512('leat'), 16) => "781cbd41adec6c02"
unhex(text) -> BYTES | the bytes behind hexadecimal text
  unhex('6C656174') => "bGVhdA=="
xxhash64(value, …) -> BIGINT | xxHash of 64 bits
  xxhash64('leat') => 403223491080069594

# Aggregates
bool_or(condition), any, some -> BOOLEAN | whether it holds for one
  bool_or(b) => true
any_value(x) -> ANY | the value of some row, NULLs passed over
  spark: any_value({1}, true)
  any_value(n) > 0 => true
approx_count_distinct(x[, error]) -> BIGINT | how many different values, within 5 % or the error
  approx_count_distinct(t) => 2
array_agg(x), collect_list -> ARRAY | every value but NULL; the order is not defined
  array_sort(array_agg(t)) => ["a", "b", "b"]
avg(x), mean -> DOUBLE | mean
  avg(d) => 4.0
bit_and(x) -> NUMBER | bits that are set in all
  bit_and(n) => 0
bit_or(x) -> NUMBER | bits that are set in one
  bit_or(n) => 7
bit_xor(x) -> NUMBER | bits that are set in an odd number of them
  bit_xor(n) => 7
bool_and(condition), every -> BOOLEAN | whether it holds for all
  bool_and(b) => false
collect_set(x) -> ARRAY | every different value; the order is not defined
  array_sort(collect_set(t)) => ["a", "b"]
corr(x, y) -> DOUBLE | correlation
  round(corr(n, d), 6) => 0.998625
count(x) -> BIGINT | rows where it is not NULL; count(*) all rows
  count(n) => 3
count_if(condition) -> BIGINT | rows where it holds
  count_if(b) => 2
covar_pop(x, y) -> DOUBLE | covariance of a population
  round(covar_pop(n, d), 6) => 3.666667
covar_samp(x, y) -> DOUBLE | covariance of a sample
  round(covar_samp(n, d), 6) => 5.5
first_value(x), first -> ANY | the value of the earliest row by event time, NULLs passed over
  spark: min_by({1}, {time}) FILTER (WHERE {1} IS NOT NULL)
  first_value(t) => "a"
last_value(x), last -> ANY | the value of the latest row by event time, NULLs passed over
  spark: max_by({1}, {time}) FILTER (WHERE {1} IS NOT NULL)
  last_value(t) => "b"
listagg(x[, separator]), string_agg -> VARCHAR | texts put together, by ',' if not said otherwise; the order is not defined
  spark[1]: (CASE WHEN count({1}) > 0 THEN array_join(collect_list(CAST({1} AS STRING)), ',') END)
  spark[2]: (CASE WHEN count({1}) > 0 THEN array_join(collect_list(CAST({1} AS STRING)), {2}) END)
  char_length(listagg(t, '; ')) => 7
max(x) -> ANY | the greatest
  max(n) => 4
max_by(x, y) -> ANY | the x of the row with the greatest y
  max_by(t, n) => "b"
median(x) -> DOUBLE | the middle value
  median(d) => 3.0
min(x) -> ANY | the least
  min(n) => 1
min_by(x, y) -> ANY | the x of the row with the least y
  min_by(t, n) => "a"
mode(x) -> ANY | the most frequent value
  mode(t) => "b"
percentile(x, share) -> DOUBLE | exact percentile, the share from 0 to 1
  percentile(d, 0.5) => 3.0
percentile_approx(x, share[, accuracy]), approx_percentile -> NUMBER | percentile with bounded state
  percentile_approx(n, 0.5) => 2
stddev(x), std, stddev_samp -> DOUBLE | standard deviation of a sample
  round(stddev(d), 6) => 3.605551
stddev_pop(x) -> DOUBLE | standard deviation of a population
  round(stddev_pop(d), 6) => 2.94392
sum(x) -> NUMBER | sum; BIGINT for whole numbers
  sum(n) => 7
try_avg(x) -> DOUBLE | as avg, NULL on overflow
  try_avg(d) => 4.0
try_sum(x) -> NUMBER | as sum, NULL on overflow
  try_sum(n) => 7
var_pop(x) -> DOUBLE | variance of a population
  round(var_pop(d), 6) => 8.666667
var_samp(x), variance -> DOUBLE | variance of a sample
  round(variance(d), 6) => 13.0

# Refused
collect: SQL's MULTISET is no type here | Write collect_list(…).
current_watermark: Spark does not let a row see the watermark | DESCRIBE QUERY METRICS shows it.
cume_dist, dense_rank, lag, lead, nth_value, ntile, percent_rank, rank, row_number: a window function needs all rows at once, and a stream has no last one | max_by(x, rowtime()) with GROUP BY keeps the latest of a key.
explode, explode_outer, inline, json_tuple, posexplode, stack, unnest: table functions stand in no expression | Write UNNEST(…) in FROM.
hop_end, hop_start, session_end, session_start, tumble_end, tumble_start: group windows of old Flink are not built | Write FROM TUMBLE(relation, SIZE …) and window_start, window_end.
json_arrayagg, json_objectagg: JSON aggregates are not built | Write to_json(collect_list(…)).
match_rowtime: it is known inside MATCH_RECOGNIZE only |
parse_json, try_parse_json: Spark's VARIANT is no type here | Write from_json(text, 'a BIGINT, …') or json_value(text, path).
python, python_udf: functions in Python are made by CREATE FUNCTION |
input_file_name, java_method, reflect, try_reflect, raise_error, assert_true, version, current_user, current_catalog, current_database, session_window, window, spark_partition_id, monotonically_increasing_id: it shows or runs what is the engine's own |
`,Fe=`
all alter and any as asc between by case cast create cross current_date current_timestamp desc distinct else end escape
except exists false from full group having ilike in inner insert into intersect is join left like limit natural not null
on or order outer over primary right rlike rows select set then true union update using values when where with
after application atomic avro batch beginning bytes changelog changelogs clickhouse cumulate database databases
delete describe descriptor_source descriptor_sources drop earliest emit entities entity every file function functions
function_source function_sources grouping header hop hours iceberg if interval json key kinesis kafka latest list lookup
match_recognize materialized measures milliseconds minutes offset pattern postgres print protobuf queries query
relations replace resume restart role savepoint savepoints schema schema_registries schema_registry schemas
seconds secret secrets session sets skip store stores stream streams table tables terminate tumble unnest use
version view views watermark window within
`,Ie=`
array bigint binary boolean bytes date decimal double float int integer map real row smallint string struct time timestamp
timestamp_ltz tinyint varbinary varchar
`,Q=Le(Pe),$=Y.define({keywords:Fe,types:Ie,builtin:Q.map(({label:e})=>e).join(` `),backslashEscapes:!1,doubleQuotedStrings:!1,identifierQuotes:'"`',spaceAfterDashes:!1});function Le(e){let t=new Map;for(let n of e.split(`
`)){let e=/^([a-z_][a-z0-9_]*)\(/i.exec(n)?.[1];if(e===void 0||t.has(e))continue;let[r=``,i=``]=n.split(` | `,2);t.set(e,{label:e,type:`function`,detail:r.slice(e.length),info:i})}return[...t.values()]}var Re=te();function ze(e){let t=(0,Z.useRef)(e);t.current=e;let n=(0,Z.useMemo)(()=>[Ne({dialect:$,upperCaseKeywords:!0}),$.language.data.of({autocomplete:Be(t)})],[]);return(0,Re.jsx)(u,{label:`SQL`,text:e.text,marks:e.marks,onChange:e.onChange,language:n,keys:[{key:`Mod-Enter`,run:e=>{let{from:n,to:r}=e.state.selection.main;return t.current.onRun(n===r?null:{text:e.state.sliceDoc(n,r),from:n}),!0},preventDefault:!0}],hint:`SELECT … or CREATE STREAM … AS SELECT …`,focus:!0,...e.editor?{editor:e.editor}:{}})}function Be(e){return t=>{let n=t.matchBefore(/[\w.]+/);if(n===null&&!t.explicit)return null;let r=e.current.relations.map(e=>({label:e,type:`class`,boost:2}));return{from:n?.from??t.pos,options:[...r,...Q],validFor:/^[\w.]*$/}}}export{ze as Editor};