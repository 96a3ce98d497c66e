"""Languages by what headers of tables call them: codes of two and three letters, and English names."""

import re

# Two letters, three letters (ISO 639), names; of languages without two letters only names, since most words of three
# letters are the code of some language.
_TABLE = """
aa/aar/Afar; ab/abk/Abkhazian/Abkhaz; ae/ave/Avestan; af/afr/Afrikaans; ak/aka/Akan; am/amh/Amharic;
an/arg/Aragonese; ar/ara/arb/Arabic; as/asm/Assamese; av/ava/Avaric; ay/aym/Aymara; az/aze/azj/Azerbaijani;
ba/bak/Bashkir; be/bel/Belarusian/Belorussian/Byelorussian; bg/bul/Bulgarian; bh/bih/bho/Bihari/Bhojpuri;
bi/bis/Bislama; bm/bam/Bambara; bn/ben/Bangla/Bengali; bo/bod/tib/Tibetan; br/bre/Breton; bs/bos/Bosnian;
ca/cat/Catalan/Valencian; ce/che/Chechen; ch/cha/Chamorro; co/cos/Corsican; cr/cre/Cree; cs/ces/cze/Czech;
cu/chu/Church Slavic/Church Slavonic/Old Church Slavonic; cv/chv/Chuvash; cy/cym/wel/Welsh; da/dan/Danish;
de/deu/ger/German; dv/div/Divehi/Dhivehi/Maldivian; dz/dzo/Dzongkha; ee/ewe/Ewe; el/ell/gre/Greek/Modern Greek;
en/eng/English/American English/British English; eo/epo/Esperanto;
es/spa/Spanish/Castilian/European Spanish/Latin American Spanish; et/est/ekk/Estonian; eu/eus/baq/Basque;
fa/fas/per/pes/Persian/Farsi; ff/ful/Fula/Fulah; fi/fin/Finnish; fj/fij/Fijian; fo/fao/Faroese/Faeroese;
fr/fra/fre/French/Canadian French; fy/fry/Western Frisian/Frisian/West Frisian; ga/gle/Irish/Irish Gaelic;
gd/gla/Scottish Gaelic/Gaelic/Scots Gaelic; gl/glg/Galician; gn/grn/Guarani/Guaraní; gu/guj/Gujarati;
gv/glv/Manx; ha/hau/Hausa; he/heb/Hebrew; hi/hin/Hindi; ho/hmo/Hiri Motu; hr/hrv/scr/Croatian;
ht/hat/Haitian Creole/Haitian; hu/hun/Hungarian; hy/hye/arm/Armenian; hz/her/Herero; ia/ina/Interlingua;
id/ind/Indonesian; ie/ile/Interlingue; ig/ibo/Igbo; ii/iii/Sichuan Yi/Nuosu; ik/ipk/Inupiaq; io/ido/Ido;
is/isl/ice/Icelandic; it/ita/Italian; iu/iku/Inuktitut; ja/jpn/Japanese; jv/jav/Javanese; ka/kat/geo/Georgian;
kg/kon/Kongo; ki/kik/Kikuyu/Gikuyu; kj/kua/Kuanyama/Kwanyama; kk/kaz/Kazakh; kl/kal/Kalaallisut/Greenlandic;
km/khm/Khmer/Cambodian/Central Khmer; kn/kan/Kannada; ko/kor/Korean; kr/kau/Kanuri; ks/kas/Kashmiri;
ku/kur/kmr/Kurdish; kv/kom/Komi; kw/cor/Cornish; ky/kir/Kyrgyz/Kirghiz; la/lat/Latin;
lb/ltz/Luxembourgish/Letzeburgesch; lg/lug/Ganda/Luganda; li/lim/Limburgish/Limburgan; ln/lin/Lingala;
lo/lao/Lao/Laotian; lt/lit/Lithuanian; lu/lub/Luba-Katanga; lv/lav/lvs/Latvian; mg/mlg/plt/Malagasy;
mh/mah/Marshallese; mi/mri/mao/Māori/Maori; mk/mkd/mac/Macedonian; ml/mal/Malayalam; mn/mon/khk/Mongolian;
mr/mar/Marathi; ms/msa/may/zsm/Malay/Malaysian; mt/mlt/Maltese; my/mya/bur/Burmese/Myanmar;
na/nau/Nauru/Nauruan; nb/nob/Norwegian Bokmål/Bokmål/Norwegian Bokmal; nd/nde/North Ndebele; ne/nep/npi/Nepali;
ng/ndo/Ndonga; nl/nld/dut/Dutch/Flemish; nn/nno/Norwegian Nynorsk/Nynorsk; no/nor/Norwegian;
nr/nbl/South Ndebele; nv/nav/Navajo/Navaho; ny/nya/Nyanja/Chichewa/Chewa; oc/oci/Occitan; oj/oji/Ojibwa;
om/orm/Oromo; or/ori/ory/Odia/Oriya; os/oss/Ossetic/Ossetian; pa/pan/Punjabi/Panjabi; pi/pli/Pali;
pl/pol/Polish; ps/pus/pbu/Pashto/Pushto; pt/por/Portuguese/Brazilian Portuguese/European Portuguese;
qu/que/Quechua; rm/roh/Romansh/Rumantsch; rn/run/Rundi/Kirundi; ro/ron/rum/Romanian/Moldavian/Moldovan;
ru/rus/Russian; rw/kin/Kinyarwanda; sa/san/Sanskrit; sc/srd/Sardinian; sd/snd/Sindhi;
se/sme/Northern Sami/Sami; sg/sag/Sango; sh/hbs/Serbo-Croatian; si/sin/Sinhala/Sinhalese/Singhalese;
sk/slk/slo/Slovak; sl/slv/Slovenian; sm/smo/Samoan; sn/sna/Shona; so/som/Somali; sq/sqi/alb/als/Albanian;
sr/srp/scc/Serbian; ss/ssw/Swati/Swazi; st/sot/Southern Sotho/Sotho/Sesotho; su/sun/Sundanese; sv/swe/Swedish;
sw/swa/swh/Swahili/Kiswahili; ta/tam/Tamil; te/tel/Telugu; tg/tgk/Tajik; th/tha/Thai; ti/tir/Tigrinya/Tigrigna;
tk/tuk/Turkmen; tl/tgl/fil/Tagalog/Filipino; tn/tsn/Tswana/Setswana; to/ton/Tongan/Tonga; tr/tur/Turkish;
ts/tso/Tsonga; tt/tat/Tatar; tw/twi/Twi; ty/tah/Tahitian; ug/uig/Uyghur/Uighur; uk/ukr/Ukrainian; ur/urd/Urdu;
uz/uzb/uzn/Uzbek; ve/ven/Venda; vi/vie/Vietnamese; vo/vol/Volapük/Volapuk; wa/wln/Walloon; wo/wol/Wolof;
xh/xho/Xhosa/isiXhosa; yi/yid/ydd/Yiddish; yo/yor/Yoruba; za/zha/Zhuang;
zh/zho/chi/cmn/Chinese/Mandarin/Mandarin Chinese/Simplified Chinese/Traditional Chinese; zu/zul/Zulu/isiZulu;
Acehnese; Ancient Greek; Aramaic; Assyrian; Asturian; Awadhi; Balinese; Balochi; Banjar; Bavarian; Bemba; Bikol;
Buginese; Cantonese; Cebuano; Central Kurdish/Sorani; Cherokee; Coptic; Crimean Tatar; Dari; Dinka; Dyula;
Egyptian Arabic; Fon; Friulian; Galician-Portuguese; Hakka; Hawaiian; Hiligaynon; Hmong; Ilocano/Iloko; Kabyle;
Kachin/Jingpho; Kashubian; K'iche'; Kabuverdianu/Cape Verdean Creole; Klingon; Konkani; Krio; Ladino; Latgalian;
Ligurian; Lombard; Low German; Luo; Lower Sorbian; Maithili; Magahi; Manipuri/Meitei; Mapudungun/Mapuche;
Middle English; Minangkabau; Mizo; Moroccan Arabic; Mossi; Nahuatl; Neapolitan; Nigerian Pidgin;
Northern Sotho/Sepedi; Nuer; Old English; Pangasinan; Papiamento; Piedmontese; Romani/Romany; Rusyn; Santali;
Scots; Shan; Sicilian; Silesian; Swiss German; Syriac; Tamazight; Tetum; Tok Pisin; Tulu; Tumbuka; Tuvan;
Udmurt; Umbundu; Upper Sorbian; Venetian; Waray; Yakut; Yucatec; Zaza; Zazaki
"""
_ALIKE = [entry.strip().lower().split("/") for entry in _TABLE.split(";")]
_LANGUAGES = {name: names[0] for names in _ALIKE for name in names}
# A script and a region after a code, as in zh-Hans, pt_BR, en_us or es-419.
_CODE = re.compile(r"([A-Za-z]{2,3})((?:[_-][A-Z][a-z]{3})?(?:[_-](?:[A-Z]{2}|[0-9]{3})|_[a-z]{2})?)")
# What may follow a name, as in Chinese (Traditional).
_IN_BRACKETS = re.compile(r"(.*\S)\s*(\(.*\))")


def language_of(text: str) -> tuple[str, str] | None:
    """The language that a text names, its code of two letters or else its name, and what is said beyond it."""
    text = text.strip()
    match = _CODE.fullmatch(text) or _IN_BRACKETS.fullmatch(text)
    name, beyond = match.groups() if match else (text, "")
    language = _LANGUAGES.get(name.lower())
    return (language, beyond.lower().replace("-", "_")) if language else None


def other_names(code: str) -> list[str]:
    """All names of the language of a code such as en or en-GB, in small letters."""
    language = language_of(code)
    return next((names for names in _ALIKE if language and names[0] == language[0]), [])
